"""The cave of a world by seed: a path from the entry to the ember, with a key before each locked door.

The hero reaches one locked door at a time, so he cannot waste a key.
"""

import random
from dataclasses import dataclass, field
from itertools import pairwise

from bramble.generator.maze import Spot, blank_room, draw_doorway, neighbour, opposite_side, scatter
from bramble.worlds.model import STEPS

SIZE = 5  # spots along each side: a dungeon has eight at most
ENEMIES = ("walker", "charger", "bat", "spitter")
THEMES = ("dungeon1", "dungeon2", "dungeon3")


@dataclass(slots=True)
class CaveDraft:
    """The cave's rooms as text, its milestones and its entry room."""

    entry: int
    lines: list[str] = field(default_factory=list)
    milestones: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _RoomDraft:
    spot: Spot
    exits: dict[str, str] = field(default_factory=dict)
    solve: str = ""
    objects: list[str] = field(default_factory=list)


def draw_cave(rng: random.Random, home: int) -> CaveDraft:
    """Draw a cave of five to nine rooms, whose entry leads to cell 2,3 of room 0:`home`."""
    path = _path(rng, rng.randint(5, 7))
    rooms = {spot: _RoomDraft(spot) for spot in path}
    sides = [next(s for s in STEPS if neighbour(a, s) == b) for a, b in pairwise(path)]
    locks = sorted(rng.sample(range(1, len(path) - 2), rng.randint(1, 2)))
    for index, side in enumerate(sides):
        mine, theirs = ("K", "K") if index in locks else ("_", "_")
        if index == len(sides) - 1:
            mine = "g"
        rooms[path[index]].exits[side] = mine
        rooms[path[index + 1]].exits[opposite_side(side)] = theirs
    cave = CaveDraft(entry=_number(path[0]))
    rooms[path[0]].objects += [f"warp {column},7 to 0:{home:02x} 2,3 down" for column in (4, 5)]
    _hide_keys(rng, cave, rooms, path, locks)
    _furnish(rng, cave, rooms, path)
    theme = rng.choice(THEMES)
    for room in rooms.values():
        cave.lines += [*_text(rng, room, theme, room.spot == path[0]), ""]
    return cave


def _number(spot: Spot) -> int:
    return spot[1] * 16 + spot[0]


def _on_map(spot: Spot) -> bool:
    return 0 <= spot[0] < SIZE and 0 <= spot[1] < SIZE


def _path(rng: random.Random, length: int) -> list[Spot]:
    """A random path over the grid that starts at the lower edge and never crosses itself."""
    while True:
        path = [(rng.randrange(SIZE), SIZE - 1)]
        while len(path) < length:
            choices = [
                spot for side in ("up", "left", "right", "up") if (spot := neighbour(path[-1], side)) not in path
                and _on_map(spot)
            ]  # fmt: skip
            if not choices:
                break
            path.append(rng.choice(choices))
        if len(path) == length:
            return path


def _hide_keys(
    rng: random.Random, cave: CaveDraft, rooms: dict[Spot, _RoomDraft], path: list[Spot], locks: list[int]
) -> None:
    """Put a key before each locked door: in a side room if there is space, else on the path."""
    first = 0
    for count, lock in enumerate(locks, start=1):
        index = rng.randint(first, lock)
        spot = _side_room(rng, rooms, path[index]) or path[index]
        room = rooms[spot]
        guarded = spot not in path
        room.solve = "cleared" if guarded else room.solve
        # A guarded key is a hidden treasure: a hidden chest could appear under the hero.
        room.objects.append("treasure 2,2 small_key hidden" if guarded else "chest 2,2 small_key")
        if guarded:
            room.objects += [f"enemy 6,{row} {rng.choice(ENEMIES[:2])}" for row in (2, 5)]
        cave.milestones.append(f"milestone key{count} A key in the cave: taken 4:{_number(spot):02x}")
        first = lock + 1


def _side_room(rng: random.Random, rooms: dict[Spot, _RoomDraft], beside: Spot) -> Spot | None:
    """Add a room beside another one; None if there is no space."""
    free = [
        side for side in STEPS if (s := neighbour(beside, side)) not in rooms and 0 <= s[0] < SIZE and 0 <= s[1] < SIZE
    ]
    if not free:
        return None
    side = rng.choice(free)
    spot = neighbour(beside, side)
    rooms[spot] = _RoomDraft(spot, {opposite_side(side): "_"})
    rooms[beside].exits[side] = "_"
    return spot


def _furnish(rng: random.Random, cave: CaveDraft, rooms: dict[Spot, _RoomDraft], path: list[Spot]) -> None:
    """Add enemies, the hall before the end, and the ember."""
    for spot in path[1:-2]:
        rooms[spot].objects += [f"enemy 6,{row} {rng.choice(ENEMIES)}" for row in rng.sample((2, 5), rng.randint(0, 2))]
    hall, end = rooms[path[-2]], rooms[path[-1]]
    hall.solve = "cleared"
    hall.objects += [f"enemy {x},{y} {rng.choice(ENEMIES[:2])}" for x, y in ((3, 5), (6, 2), (6, 5))]
    end.objects += ["treasure 4,4 essence 1", "  say The ember glows. The land is warm again. The end!"]
    cave.milestones += [
        f"milestone hall The hall of beasts: solved 4:{_number(path[-2]):02x}",
        "milestone ember The ember: essences 1",
    ]


def _text(rng: random.Random, room: _RoomDraft, theme: str, entry: bool) -> list[str]:
    rows = blank_room("W", "_", room.exits)
    for side, letter in room.exits.items():
        draw_doorway(rows, side, letter)
    if entry:
        draw_doorway(rows, "down", "<")
    taken = {(x, y) for x in (2, 6) for y in (2, 5)} if len(room.objects) > 2 * entry else set()
    scatter(rng, rows, taken, "PPu%")
    head = f"room 4:{_number(room.spot):02x} {theme}" + (f" solve {room.solve}" if room.solve else "")
    return [head, *("".join(row) for row in rows), *room.objects]
