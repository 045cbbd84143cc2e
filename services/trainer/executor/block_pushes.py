"""Pushes that bring blocks onto tiles, found by breadth-first search over the blocks and the side of the hero.

Whether a tile can be pushed at all is not known: a push that fails ends the plan.
"""

from collections import deque
from collections.abc import Collection, Iterator
from typing import Final

from services.trainer.executor.macros import PushBlock, Tile
from services.trainer.executor.outcome import STEPS

MAX_POSITIONS: Final = 4_000  # of blocks and hero; about 30 ms, and enough for a room with two blocks

Blocks = frozenset[Tile]
Position = tuple[Blocks, Tile]
"""Where the blocks lie, and the first tile that the hero can walk to: from anywhere in this area he makes the same
pushes."""


def plan_pushes(
    hero: Tile, blocks: Collection[Tile], targets: Collection[Tile], floor: Collection[Tile], space: Collection[Tile]
) -> list[PushBlock] | None:
    """The fewest pushes after which a block lies on every target; None without a way or with too many positions.

    The hero stands at `hero` and walks over `floor`, also where blocks lay before. Blocks move within `space`.
    """
    ground, room = frozenset(floor) | frozenset(blocks), frozenset(space) | frozenset(blocks)
    start = frozenset(blocks), hero
    came: dict[Position, tuple[Position, PushBlock] | None] = {}
    waiting: deque[tuple[Blocks, Tile, tuple[Position, PushBlock] | None]] = deque([(*start, None)])
    while waiting and len(came) < MAX_POSITIONS:
        lying, standing, step = waiting.popleft()
        area = _reachable(standing, ground - lying)
        here = lying, min(area)
        if here in came:
            continue
        came[here] = step
        if lying.issuperset(targets):
            return _pushes(came, here)
        for push, moved in _possible(lying, area, room):
            waiting.append((moved, push.tile, (here, push)))
    return None


def _possible(blocks: Blocks, area: Collection[Tile], space: Collection[Tile]) -> Iterator[tuple[PushBlock, Blocks]]:
    """Each push that a hero in this area can make, and the blocks after it."""
    for block in sorted(blocks):
        for direction, (dx, dy) in enumerate(STEPS):
            behind, ahead = (block[0] - dx, block[1] - dy), (block[0] + dx, block[1] + dy)
            if behind in area and ahead in space and ahead not in blocks:
                yield PushBlock(block, direction), blocks - {block} | {ahead}


def _pushes(came: dict[Position, tuple[Position, PushBlock] | None], last: Position) -> list[PushBlock]:
    pushes: list[PushBlock] = []
    while (step := came[last]) is not None:
        last, push = step
        pushes.append(push)
    return pushes[::-1]


def _reachable(start: Tile, free: Collection[Tile]) -> set[Tile]:
    """Tiles that the hero can walk to."""
    found, waiting = {start}, [start]
    while waiting:
        column, row = waiting.pop()
        for dx, dy in STEPS:
            tile = column + dx, row + dy
            if tile in free and tile not in found:
                found.add(tile)
                waiting.append(tile)
    return found
