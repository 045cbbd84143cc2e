"""Pushes that bring a block from one tile to another, found by breadth-first search over blocks and sides.

Whether the tile can be pushed at all is not known: a push that fails ends the option.
"""

from collections import deque
from collections.abc import Collection

from services.trainer.executor.macros import PushBlock, Tile
from services.trainer.executor.outcome import STEPS


def pushes_between(block: Tile, goal: Tile, hero: Tile, standable: Collection[Tile]) -> list[PushBlock]:
    """The fewest pushes of `block` onto `goal`, for a hero who stands at `hero`; empty if no pushes do it.

    The hero walks over `standable` and over the tile that the block left. Only one block moves.
    """
    free = frozenset(standable) | {block}
    waiting: deque[tuple[Tile, Tile, tuple[PushBlock, ...]]] = deque([(block, hero, ())])
    seen: set[tuple[Tile, Tile]] = set()
    while waiting:
        at, standing, pushes = waiting.popleft()
        if at == goal:
            return list(pushes)
        walked = _reachable(standing, free - {at})
        area = at, min(walked)  # wherever the hero stands within an area, he can make the same pushes
        if area in seen:
            continue
        seen.add(area)
        for direction, (dx, dy) in enumerate(STEPS):
            behind, ahead = (at[0] - dx, at[1] - dy), (at[0] + dx, at[1] + dy)
            if behind in walked and ahead in free:
                waiting.append((ahead, at, (*pushes, PushBlock(at, direction))))
    return []


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
