"""Where the hero can stand: places 8 pixels apart, each free if the cells that his body covers are free.

A *wide* place covers 2 x 2 cells, as much as his body; it keeps a distance from walls, so that no step touches one. A
*narrow* place covers one cell: both games let him through gaps of 8 pixels. Narrow places are used only where wide ones
do not lead.
"""

from functools import lru_cache
from typing import Final

from services.trainer.executor.macros import Tile
from shared.game.decoding.grid import CELL, Grid, tile_of

WIDE, NARROW = 2, 1
# Doors, stairs and caves: outdoors, and everywhere else. Walking over one leaves the room.
_OUTDOOR_WARPS: Final = frozenset({*range(0xE6, 0xEC), 0xED, 0xEE, 0xEF})
_INDOOR_WARPS: Final = frozenset({*range(0x44, 0x48), 0x4F, 0x34, 0x36, *range(0x50, 0x54)})

Place = tuple[int, int]


class NavigationGrid:
    """The free places of one room."""

    def __init__(self, grid: Grid, size: int) -> None:
        """`size` is WIDE or NARROW: the cells that a place covers in each direction."""
        self.size = size
        self.across, self.down = grid.width - size + 1, grid.height - size + 1
        self.free = tuple(self._free_row(grid, row) for row in range(self.down))

    def _free_row(self, grid: Grid, row: int) -> bytes:
        rows = grid.rows[row : row + self.size]
        return bytes(
            not any(part[column : column + self.size].strip(b"\0") for part in rows) for column in range(self.across)
        )

    def is_free(self, place: Place) -> bool:
        """Whether the hero can stand at a place; none lies outside of the room."""
        column, row = place
        return 0 <= column < self.across and 0 <= row < self.down and self.free[row][column] == 1

    def position(self, place: Place) -> tuple[int, int]:
        """The hero's coordinates at a place, in pixels."""
        half = CELL * self.size // 2
        return place[0] * CELL + half, place[1] * CELL + half - 3

    def near(self, x: int, y: int) -> dict[Place, int]:
        """Free places around a position, each with its distance in pixels: those that his cells touch, else wider."""
        half = CELL * self.size // 2
        column, row = (x - half) // CELL, (y + 3 - half) // CELL
        return self._free_within(column, row, (0, 1), x, y) or self._free_within(column, row, (-1, 0, 1, 2), x, y)

    def _free_within(self, column: int, row: int, reach: tuple[int, ...], x: int, y: int) -> dict[Place, int]:
        places = ((column + dx, row + dy) for dx in reach for dy in reach)
        return {place: self._distance(place, x, y) for place in places if self.is_free(place)}

    def _distance(self, place: Place, x: int, y: int) -> int:
        at = self.position(place)
        return abs(at[0] - x) + abs(at[1] - y)

    def tile(self, place: Place) -> Tile:
        """The tile under the hero's feet at a place."""
        return tile_of(*self.position(place))

    def on_tile(self, tile: Tile) -> list[Place]:
        """Free places whose feet are on a tile. A place that the tile holds whole is the only one if it is free."""
        column, row = tile[0] * 2, tile[1] * 2
        if self.size == WIDE and self.is_free((column, row)):
            return [(column, row)]
        around = [(column + dx, row + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
        return [place for place in around if self.is_free(place) and self.tile(place) == tile]


@lru_cache(maxsize=64)
def navigation_grid(grid: Grid, size: int) -> NavigationGrid:
    """The navigation grid of a collision grid, cached: a collision grid is built once per map."""
    return NavigationGrid(grid, size)


def warp_tiles(tiles: bytes, outdoors: bool) -> frozenset[Tile]:
    """Tiles of a room that lead elsewhere, judged by their metatile. `tiles` has 16 bytes a row."""
    warps = _OUTDOOR_WARPS if outdoors else _INDOOR_WARPS
    return frozenset((place & 15, place >> 4) for place, number in enumerate(tiles) if number in warps)
