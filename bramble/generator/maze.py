"""Rooms and mazes for worlds by seed: a grid of spots joined in a tree with loops, and the letters of one room.

Columns 4 and 5 and rows 3 and 4 of every room stay free, so that its exits stay connected.
"""

import random
from collections.abc import Iterable

from bramble.worlds.model import COLUMNS, ROWS, STEPS, Cell

Spot = tuple[int, int]
"""Column and row of a room on the map."""
Letters = list[list[str]]
DOORWAY: dict[str, tuple[Cell, Cell]] = {
    "up": ((4, 0), (5, 0)),
    "down": ((4, ROWS - 1), (5, ROWS - 1)),
    "left": ((0, 3), (0, 4)),
    "right": ((COLUMNS - 1, 3), (COLUMNS - 1, 4)),
}
CORNERS = ((1, 1), (6, 1), (1, 5), (6, 5))
LOOPS = 0.25  # share of possible joins: more leaves no maze, fewer makes long ways back


def neighbour(spot: Spot, side: str) -> Spot:
    """The neighbouring spot on a side."""
    dx, dy = STEPS[side]
    return spot[0] + dx, spot[1] + dy


def opposite_side(side: str) -> str:
    """The opposite side."""
    names = list(STEPS)
    return names[(names.index(side) + 2) % 4]


def spanning_tree(rng: random.Random, spots: Iterable[Spot], start: Spot) -> set[frozenset[Spot]]:
    """Joins that make a depth-first maze of the spots, with long corridors."""
    open_spots, joins = set(spots) - {start}, set()
    path = [start]
    while path:
        choices = [spot for side in STEPS if (spot := neighbour(path[-1], side)) in open_spots]
        if not choices:
            path.pop()
            continue
        joins.add(frozenset((path[-1], nearest := rng.choice(choices))))
        open_spots.discard(nearest)
        path.append(nearest)
    return joins


def add_loops(rng: random.Random, joins: set[frozenset[Spot]], regions: Iterable[set[Spot]]) -> None:
    """Join more neighbours within each region."""
    for region in regions:
        for spot in sorted(region):
            for side in ("right", "down"):
                there = neighbour(spot, side)
                if there in region and rng.random() < LOOPS:
                    joins.add(frozenset((spot, there)))


def blank_room(wall: str, ground: str, exits: Iterable[str]) -> Letters:
    """An empty room with a wall around it and doorways of two cells."""
    inner = [wall, *[ground] * (COLUMNS - 2), wall]
    rows = [[wall] * COLUMNS, *(list(inner) for _ in range(ROWS - 2)), [wall] * COLUMNS]
    for side in exits:
        draw_doorway(rows, side, ground)
    return rows


def draw_doorway(rows: Letters, side: str, letter: str) -> None:
    """Put a letter into both cells of a doorway."""
    for x, y in DOORWAY[side]:
        rows[y][x] = letter


def wall_off(rows: Letters, side: str, wall: str, letter: str) -> None:
    """Add an inner wall on a side, with `letter` before the doorway: brambles may not grow on the edge."""
    dx, dy = STEPS[opposite_side(side)]
    across = [(x, 0 if side == "up" else ROWS - 1) for x in range(COLUMNS)]
    along = [(0 if side == "left" else COLUMNS - 1, y) for y in range(ROWS)]
    for x, y in across if side in ("up", "down") else along:
        at = x + dx, y + dy
        if 0 <= at[0] < COLUMNS and 0 <= at[1] < ROWS:
            rows[at[1]][at[0]] = letter if (x, y) in DOORWAY[side] else wall


def scatter(rng: random.Random, rows: Letters, taken: set[Cell], letters: str) -> list[Cell]:
    """Scatter letters over the corners, at most three of six cells each. Returns the free corner cells."""
    free = []
    for left, top in CORNERS:
        cells = [(x, y) for x in range(left, left + 3) for y in (top, top + 1)]
        if taken & set(cells):
            continue
        solid = rng.sample(cells, rng.randint(0, 3))
        for x, y in cells:
            if rows[y][x] not in (".", "_"):
                continue
            if (x, y) in solid:
                rows[y][x] = rng.choice(letters)
            else:
                free.append((x, y))
    return free
