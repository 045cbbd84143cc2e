"""Plans block pushes so that every switch of a room holds a block: a search over the cells of blocks and hero.

It needs no emulator. The rules are those of engine/items.c: a block moves one cell, onto a free cell, and never onto
the outer cells of a room.
"""

from collections import deque
from collections.abc import Iterator

from bramble.worlds.model import COLUMNS, ROWS, STEPS, Cell

Push = tuple[Cell, str]
PuzzleState = tuple[frozenset[Cell], frozenset[Cell]]
"""Cells of the blocks, and cells that the hero can reach."""


def _area(start: Cell, free: frozenset[Cell]) -> frozenset[Cell]:
    """Cells that the hero can walk to."""
    seen = {start}
    queue = deque([start])
    while queue:
        x, y = queue.popleft()
        for dx, dy in STEPS.values():
            cell = (x + dx, y + dy)
            if cell in free and cell not in seen:
                seen.add(cell)
                queue.append(cell)
    return frozenset(seen)


def _pushes(blocks: frozenset[Cell], area: frozenset[Cell], free: frozenset[Cell]) -> Iterator[tuple[Push, Cell]]:
    """Each possible push and the cell where the block ends."""
    for x, y in sorted(blocks):
        for name, (dx, dy) in STEPS.items():
            target = (x + dx, y + dy)
            inside = 0 < target[0] < COLUMNS - 1 and 0 < target[1] < ROWS - 1
            if inside and (x - dx, y - dy) in area and target in free and target not in blocks:
                yield ((x, y), name), target


def plan_pushes(
    hero: Cell, floor: frozenset[Cell], blocks: frozenset[Cell], switches: frozenset[Cell]
) -> list[Push] | None:
    """The fewest pushes after which each switch holds a block, or None if no sequence does.

    `floor` holds every cell that is free without the blocks. A block on a switch stays there.
    """
    first = (blocks, _area(hero, floor - blocks))
    plans: dict[PuzzleState, list[Push]] = {first: []}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        now, area = state
        if switches <= now:
            return plans[state]
        for push, target in _pushes(now - switches, area, floor - now):
            moved = now - {push[0]} | {target}
            after = (moved, _area(push[0], floor - moved))
            if after not in plans:
                plans[after] = [*plans[state], push]
                queue.append(after)
    return None
