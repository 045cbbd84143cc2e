"""Worlds by seed: `wild:<seed>` is a text in the format of worlds/*.txt, made by dice and proven before it is used.

Outdoors, a maze of rooms in which a sword opens the way to a cave; in the cave, a path with locked doors, whose keys
lie before them, and a hall of beasts before the ember. Two seeds give two worlds; the same seed gives the same world.
"""

import random
from dataclasses import dataclass, field
from functools import lru_cache

from bramble.model import STEPS, Cell, WorldError
from bramble.proof import prove
from bramble.wildcave import Cave, draw_cave
from bramble.wildmap import Spot, add_loops, canvas, close, opposite, scatter, spanning_tree, step
from bramble.worldfile import parse_world

ATTEMPTS = 50  # a draft in a hundred cannot be finished; if fifty in a row cannot, the dice are loaded
NAMES = ("Ash", "Birch", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Rowan", "Willow")
PLACES = ("Hills", "Moor", "Woods", "Fells", "Marsh", "Downs")
ENEMIES = ("walker", "walker", "spitter", "charger", "bat")
HINTS = {
    "up": "north", "right": "east", "down": "south", "left": "west",
}  # fmt: skip


@dataclass(slots=True)
class Land:
    """The outdoors while it is drafted: which rooms join, and where things are."""

    rng: random.Random
    width: int
    height: int
    start: Spot
    joins: set[frozenset[Spot]] = field(default_factory=set)
    beyond: set[Spot] = field(default_factory=set)
    gate: tuple[Spot, str] = ((0, 0), "up")


@lru_cache(maxsize=64)
def wild_text(seed: int) -> str:
    """The text of a world. WorldError if no draft of this seed can be finished, which no seed tried so far did."""
    for attempt in range(ATTEMPTS):
        text = _draft(random.Random(f"{seed}/{attempt}"), seed)  # noqa: S311 - worlds, not secrets
        try:
            prove(parse_world(f"wild:{seed}", text))
        except WorldError:
            continue
        return text
    raise WorldError(f"wild:{seed}: no draft of {ATTEMPTS} can be finished: use another seed")


def _draft(rng: random.Random, seed: int) -> str:
    land = _land(rng)
    before = sorted(_all(land) - land.beyond - {land.start})
    giver = rng.choice(before)
    mouth = rng.choice(sorted(land.beyond))
    cave = draw_cave(rng, _number(mouth))
    lines = [
        f"world {rng.choice(NAMES)} {rng.choice(PLACES)}",
        f"# Made by seed {seed}.",
        f"start 0:{_number(land.start):02x} 4,4 down",
        "season " + rng.choice(("spring", "summer", "autumn")),
        "health 3",
        "",
        "milestone sword The old one's sword: owns sword",
        f"milestone gate Through the brambles: visited 0:{_number(_behind(land)):02x}",
        f"milestone cave Into the cave: visited 4:{cave.entry:02x}",
        *cave.milestones,
        "",
    ]
    for spot in sorted(_all(land)):
        lines += [*_room(land, spot, giver, mouth, cave), ""]
    return "\n".join([*lines, *cave.lines]) + "\n"


def _land(rng: random.Random) -> Land:
    width, height = rng.choice(((3, 3), (4, 3), (3, 4), (4, 4)))
    land = Land(rng, width, height, (rng.randrange(width), rng.randrange(height)))
    land.joins = spanning_tree(rng, sorted(_all(land)), land.start)
    land.gate = _gate(land)
    add_loops(rng, land.joins, [_all(land) - land.beyond, land.beyond])
    return land


def _all(land: Land) -> set[Spot]:
    return {(x, y) for x in range(land.width) for y in range(land.height)}


def _number(spot: Spot) -> int:
    return spot[1] * 16 + spot[0]


def _behind(land: Land) -> Spot:
    return step(land.gate[0], land.gate[1])


def _gate(land: Land) -> tuple[Spot, str]:
    """Cut the maze in two by brambles: at least three rooms before them, at least two behind."""
    joins = sorted(sorted(join) for join in land.joins)
    land.rng.shuffle(joins)
    for one, other in joins:
        side = next(name for name in STEPS if step(one, name) == other)
        near = _side_of(land, one, frozenset((one, other)))
        far = _all(land) - near
        if land.start in far:
            one, side, near, far = other, opposite(side), far, near
        if len(near) >= 3 and len(far) >= 2:
            land.beyond = far
            return one, side
    raise AssertionError("a tree of nine rooms or more has such an edge")


def _side_of(land: Land, spot: Spot, cut: frozenset[Spot]) -> set[Spot]:
    """Rooms that hang together with `spot` when one join is cut."""
    seen, waiting = {spot}, [spot]
    while waiting:
        here = waiting.pop()
        for side in STEPS:
            there = step(here, side)
            join = frozenset((here, there))
            if join in land.joins and join != cut and there not in seen:
                seen.add(there)
                waiting.append(there)
    return seen


def _exits(land: Land, spot: Spot) -> set[str]:
    return {side for side in STEPS if frozenset((spot, step(spot, side))) in land.joins}


def _room(land: Land, spot: Spot, giver: Spot, mouth: Spot, cave: Cave) -> list[str]:
    rng = land.rng
    rows = canvas("#", ".", _exits(land, spot))
    if spot == land.gate[0]:
        close(rows, land.gate[1], "#", "b")
    taken: set[Cell] = set()
    things: list[str] = []
    if spot == mouth:
        for (x, y), letter in {(1, 1): "c", (2, 1): "c", (3, 1): "c", (1, 2): "c", (2, 2): "C", (3, 2): "c"}.items():
            rows[y][x] = letter
            taken.add((x, y))
        taken |= {(2, 3)}
        things.append(f"warp 2,2 to 4:{cave.entry:02x} 4,6 up")
    if spot == giver:
        things += _giver(land, mouth)
        taken |= {(3, 2), (3, 3), (2, 2)}
    if spot == land.start:
        rows[5][7] = "S"
        taken |= {(7, 5)}
        things += ["sign 7,5", f"  say Brambles in the {_towards(land.start, land.gate[0])}.|Bring a blade."]
    free = scatter(rng, rows, taken, "##~cfn,,")
    if spot not in (land.start, giver):
        beasts = rng.sample(free, min(len(free), rng.randint(0, 3)))
        things += [f"enemy {x},{y} {rng.choice(ENEMIES)}" for x, y in beasts]
    elif free and rng.random() < 0.5:
        x, y = rng.choice(free)
        things.append(f"treasure {x},{y} rupees 5")
    return [f"room 0:{_number(spot):02x} outdoors", *("".join(row) for row in rows), *things]


def _giver(land: Land, mouth: Spot) -> list[str]:
    where = _towards(land.gate[0], mouth)
    return [
        "person 3,2 elder",
        "  if not owns sword",
        "    say This land lost its ember.||Take my sword and find it!",
        "    give sword",
        "  else",
        f"    say Seek a cave in the {where}, behind the brambles.",
    ]


def _towards(here: Spot, there: Spot) -> str:
    """The main direction from one room to another, in a word."""
    dx, dy = there[0] - here[0], there[1] - here[1]
    if abs(dx) > abs(dy):
        return HINTS["right" if dx > 0 else "left"]
    return HINTS["down" if dy > 0 else "up"]
