"""Worlds by seed: `wild:<seed>` gives a text in the format of worlds/*.txt, drawn at random and kept if it has a plan.

Outdoors, a maze of rooms in which a sword opens the way to a cave. In the cave, a path with locked doors, each with its
key before it, and a hall of enemies before the ember. The same seed always gives the same world.
"""

import random
from dataclasses import dataclass, field
from functools import lru_cache

from bramble.generator.cave import CaveDraft, draw_cave
from bramble.generator.maze import (
    Spot,
    add_loops,
    blank_room,
    neighbour,
    opposite_side,
    scatter,
    spanning_tree,
    wall_off,
)
from bramble.planner.search import find_plan
from bramble.worlds.model import STEPS, Cell, WorldError
from bramble.worlds.world_parser import parse_world

ATTEMPTS = 50  # one draft in a hundred has no plan; fifty in a row mean a bug
NAMES = ("Ash", "Birch", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Rowan", "Willow")
PLACES = ("Hills", "Moor", "Woods", "Fells", "Marsh", "Downs")
ENEMIES = ("walker", "walker", "spitter", "charger", "bat")
HINTS = {
    "up": "north", "right": "east", "down": "south", "left": "west",
}  # fmt: skip


@dataclass(slots=True)
class OutdoorsDraft:
    """The outdoor map of a draft: joined rooms, start, gate."""

    rng: random.Random
    width: int
    height: int
    start: Spot
    joins: set[frozenset[Spot]] = field(default_factory=set)
    beyond: set[Spot] = field(default_factory=set)
    gate: tuple[Spot, str] = ((0, 0), "up")


@lru_cache(maxsize=64)
def wild_text(seed: int) -> str:
    """The text of a world. Raise WorldError if no draft of the seed can be finished."""
    for attempt in range(ATTEMPTS):
        text = _draft(random.Random(f"{seed}/{attempt}"), seed)  # noqa: S311 - worlds, not secrets
        try:
            find_plan(parse_world(f"wild:{seed}", text))
        except WorldError:
            continue
        return text
    raise WorldError(f"wild:{seed}: no draft of {ATTEMPTS} can be finished: use another seed")


def _draft(rng: random.Random, seed: int) -> str:
    outdoors = _draft_outdoors(rng)
    before = sorted(_all_spots(outdoors) - outdoors.beyond - {outdoors.start})
    giver = rng.choice(before)
    cave_spot = rng.choice(sorted(outdoors.beyond))
    cave = draw_cave(rng, _number(cave_spot))
    lines = [
        f"world {rng.choice(NAMES)} {rng.choice(PLACES)}",
        f"# Made by seed {seed}.",
        f"start 0:{_number(outdoors.start):02x} 4,4 down",
        "season " + rng.choice(("spring", "summer", "autumn")),
        "health 3",
        "",
        "milestone sword The old one's sword: owns sword",
        f"milestone gate Through the brambles: visited 0:{_number(_first_spot_beyond(outdoors)):02x}",
        f"milestone cave Into the cave: visited 4:{cave.entry:02x}",
        *cave.milestones,
        "",
    ]
    for spot in sorted(_all_spots(outdoors)):
        lines += [*_room(outdoors, spot, giver, cave_spot, cave), ""]
    return "\n".join([*lines, *cave.lines]) + "\n"


def _draft_outdoors(rng: random.Random) -> OutdoorsDraft:
    width, height = rng.choice(((3, 3), (4, 3), (3, 4), (4, 4)))
    outdoors = OutdoorsDraft(rng, width, height, (rng.randrange(width), rng.randrange(height)))
    outdoors.joins = spanning_tree(rng, sorted(_all_spots(outdoors)), outdoors.start)
    outdoors.gate = _gate(outdoors)
    add_loops(rng, outdoors.joins, [_all_spots(outdoors) - outdoors.beyond, outdoors.beyond])
    return outdoors


def _all_spots(outdoors: OutdoorsDraft) -> set[Spot]:
    return {(x, y) for x in range(outdoors.width) for y in range(outdoors.height)}


def _number(spot: Spot) -> int:
    return spot[1] * 16 + spot[0]


def _first_spot_beyond(outdoors: OutdoorsDraft) -> Spot:
    return neighbour(outdoors.gate[0], outdoors.gate[1])


def _gate(outdoors: OutdoorsDraft) -> tuple[Spot, str]:
    """Cut the maze in two with brambles: at least three rooms before them and two behind."""
    joins = sorted(sorted(join) for join in outdoors.joins)
    outdoors.rng.shuffle(joins)
    for one, other in joins:
        side = next(name for name in STEPS if neighbour(one, name) == other)
        near = _connected(outdoors, one, frozenset((one, other)))
        far = _all_spots(outdoors) - near
        if outdoors.start in far:
            one, side, near, far = other, opposite_side(side), far, near
        if len(near) >= 3 and len(far) >= 2:
            outdoors.beyond = far
            return one, side
    raise AssertionError("a tree of nine rooms or more has such an edge")


def _connected(outdoors: OutdoorsDraft, spot: Spot, cut: frozenset[Spot]) -> set[Spot]:
    """Rooms connected with `spot` when one join is cut."""
    seen, waiting = {spot}, [spot]
    while waiting:
        here = waiting.pop()
        for side in STEPS:
            there = neighbour(here, side)
            join = frozenset((here, there))
            if join in outdoors.joins and join != cut and there not in seen:
                seen.add(there)
                waiting.append(there)
    return seen


def _exits(outdoors: OutdoorsDraft, spot: Spot) -> set[str]:
    return {side for side in STEPS if frozenset((spot, neighbour(spot, side))) in outdoors.joins}


def _room(outdoors: OutdoorsDraft, spot: Spot, giver: Spot, cave_spot: Spot, cave: CaveDraft) -> list[str]:
    rng = outdoors.rng
    rows = blank_room("#", ".", _exits(outdoors, spot))
    if spot == outdoors.gate[0]:
        wall_off(rows, outdoors.gate[1], "#", "b")
    taken: set[Cell] = set()
    objects: list[str] = []
    if spot == cave_spot:
        for (x, y), letter in {(1, 1): "c", (2, 1): "c", (3, 1): "c", (1, 2): "c", (2, 2): "C", (3, 2): "c"}.items():
            rows[y][x] = letter
            taken.add((x, y))
        taken |= {(2, 3)}
        objects.append(f"warp 2,2 to 4:{cave.entry:02x} 4,6 up")
    if spot == giver:
        objects += _sword_giver(outdoors, cave_spot)
        taken |= {(3, 2), (3, 3), (2, 2)}
    if spot == outdoors.start:
        rows[5][7] = "S"
        taken |= {(7, 5)}
        objects += ["sign 7,5", f"  say Brambles in the {_towards(outdoors.start, outdoors.gate[0])}.|Bring a blade."]
    free = scatter(rng, rows, taken, "##~cfn,,")
    if spot not in (outdoors.start, giver):
        beasts = rng.sample(free, min(len(free), rng.randint(0, 3)))
        objects += [f"enemy {x},{y} {rng.choice(ENEMIES)}" for x, y in beasts]
    elif free and rng.random() < 0.5:
        x, y = rng.choice(free)
        objects.append(f"treasure {x},{y} rupees 5")
    return [f"room 0:{_number(spot):02x} outdoors", *("".join(row) for row in rows), *objects]


def _sword_giver(outdoors: OutdoorsDraft, cave_spot: Spot) -> list[str]:
    where = _towards(outdoors.gate[0], cave_spot)
    return [
        "person 3,2 elder",
        "  if not owns sword",
        "    say This land lost its ember.||Take my sword and find it!",
        "    give sword",
        "  else",
        f"    say Seek a cave in the {where}, behind the brambles.",
    ]


def _towards(here: Spot, there: Spot) -> str:
    """The main compass direction from one room to another."""
    dx, dy = there[0] - here[0], there[1] - here[1]
    if abs(dx) > abs(dy):
        return HINTS["right" if dx > 0 else "left"]
    return HINTS["down" if dy > 0 else "up"]
