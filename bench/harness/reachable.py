"""Which tiles of a room the hero can reach, and in how many steps: a search over his real positions.

It follows the engine's rule of movement (`bramble/engine/hero.c`, `probe_walls`), not the executor's grid: 4 pixels a
step, two probes on the side he walks to. It leaves out that he slides round corners, so a real walk may be shorter.
"""

from collections import deque
from collections.abc import Collection
from typing import Final

Tile = tuple[int, int]

STEP: Final = 4
FIRST_X, LAST_X, FIRST_Y, LAST_Y = 6, 154, 6, 121  # further out, the room scrolls
NEAR: Final = 2  # pixels from the middle of a tile at which he is on it
FULL, HAZARD = 0x0F, 0x10
# Per direction: one pixel's step, and the two probes.
_MOVES: Final = (
    ((0, -1), (-3, -3), (2, -3)),
    ((1, 0), (4, 0), (4, 5)),
    ((0, 1), (-3, 7), (2, 7)),
    ((-1, 0), (-5, 0), (-5, 5)),
)


def steps_to_tiles(collisions: bytes, x: int, y: int, closed: Collection[Tile]) -> dict[Tile, int]:
    """The number of steps from (x, y) to each tile that can be reached; `closed` tiles are never stood on."""
    reached: dict[Tile, int] = {}
    depth = {(x, y): 0}
    queue = deque(depth)
    while queue:
        here = queue.popleft()
        tile = here[0] >> 4, here[1] + 5 >> 4
        if abs(here[0] - (tile[0] * 16 + 8)) <= NEAR and abs(here[1] - (tile[1] * 16 + 5)) <= NEAR:
            reached.setdefault(tile, depth[here])
        for move in _MOVES:
            there = _walk(collisions, here, move)
            if there is None or there in depth:
                continue
            feet = there[0] >> 4, there[1] + 5 >> 4
            if feet in closed or collisions[feet[1] * 16 + feet[0]] == HAZARD:
                continue
            depth[there] = depth[here] + 1
            queue.append(there)
    return reached


def _walk(collisions: bytes, here: Tile, move: tuple[Tile, Tile, Tile]) -> Tile | None:
    """The position after a step, None where a probe hits a wall or the room ends."""
    (dx, dy), *probes = move
    x, y = here
    for _ in range(STEP):
        if any(_solid(collisions, x + px, y + py) for px, py in probes):
            return None
        x, y = x + dx, y + dy
    return (x, y) if FIRST_X <= x <= LAST_X and FIRST_Y <= y <= LAST_Y else None


def _solid(collisions: bytes, x: int, y: int) -> bool:
    if not (0 <= x < 160 and 0 <= y < 128):
        return False
    value = collisions[(y & 0xF0) | x >> 4]
    quarter = 8 >> (x >> 3 & 1) >> (2 * (y >> 3 & 1))
    return 0 < value < HAZARD and bool(value & quarter)
