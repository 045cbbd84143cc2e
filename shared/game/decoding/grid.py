"""The walkable area of a room in cells of 8 by 8 pixels: distances to walls, and exits.

The collision map of the game has a byte per 16-pixel tile: 0 is free, 1-15 marks solid quarters, 16 is a hazard
(hole, water, lava), larger values are bridges and borders. Rows of the map are 16 bytes apart.
"""

from typing import Final

from shared.game.ram import offsets

STRIDE: Final = 16
CELL: Final = 8
TILE: Final = 16  # pixels
FEET: Final = 5  # pixels from the centre of a character or a thing down to what it stands on
SOLID: Final = frozenset({0x1E, 0xFE})
HAZARD: Final = 0x10
# Bits of a collision byte: top left, top right, bottom left, bottom right.
_QUARTERS: Final = (8, 4, 2, 1)


def _quarter_table(bit: int) -> bytes:
    """Collision byte -> 1 if that quarter stops the hero. The border (ff) is free: that is how a scroll begins."""
    return bytes(
        1 if (value < HAZARD and value & bit) or value in SOLID else 2 if value == HAZARD else 0 for value in range(256)
    )


_TABLES: Final = tuple(_quarter_table(bit) for bit in _QUARTERS)


class Grid:
    """The walkability of one room: cells are 0 free, 1 solid, 2 hazard. Immutable; built once per collision map."""

    __slots__ = ("columns", "exits", "height", "rows", "source", "width")

    def __init__(self, collisions: bytes, tiles_wide: int, tiles_high: int) -> None:
        """`collisions` is the map of the room with 16 bytes a row."""
        self.source = collisions
        self.width, self.height = tiles_wide * 2, tiles_high * 2
        self.rows = tuple(
            _cell_row(collisions[row * STRIDE : row * STRIDE + tiles_wide], half)
            for row in range(tiles_high)
            for half in (0, 2)
        )
        self.columns = tuple(bytes(row[column] for row in self.rows) for column in range(self.width))
        self.exits = self._exits()

    def rays(self, x: int, y: int) -> tuple[int, int, int, int]:
        """Free cells from the hero's cell up, right, down and left, until something solid or the edge."""
        column, row = self.cell(x, y)
        across, along = self.rows[row], self.columns[column]
        right, down = across.find(1, column + 1), along.find(1, row + 1)
        return (
            row - along.rfind(1, 0, row) - 1,
            (right if right >= 0 else self.width) - column - 1,
            (down if down >= 0 else self.height) - row - 1,
            column - across.rfind(1, 0, column) - 1,
        )

    def cell(self, x: int, y: int) -> tuple[int, int]:
        """Column and row of the hero at (x, y): his feet are 3 pixels below his centre."""
        return min(x // CELL, self.width - 1), min((y + 3) // CELL, self.height - 1)

    def _exits(self) -> tuple[int | None, int | None, int | None, int | None]:
        """Middle of the first opening in each side (up, right, down, left), as the cell along that side, or None."""
        return (
            _opening(self.rows[0]),
            _opening(self.columns[-1]),
            _opening(self.rows[-1]),
            _opening(self.columns[0]),
        )


def tile_of(x: int, y: int) -> tuple[int, int]:
    """Column and row of the tile that a character or a thing at (x, y), in pixels, stands on."""
    return x // TILE, (y + FEET) // TILE


def _cell_row(tiles: bytes, half: int) -> bytes:
    """One row of cells: the upper (half 0) or lower (half 2) quarters of a row of tiles."""
    cells = bytearray(2 * len(tiles))
    cells[0::2], cells[1::2] = tiles.translate(_TABLES[half]), tiles.translate(_TABLES[half + 1])
    return bytes(cells)


def _opening(side: bytes) -> int | None:
    first = side.find(0)
    if first < 0:
        return None
    last = first
    while last + 1 < len(side) and side[last + 1] == 0:
        last += 1
    return (first + last) // 2


def room_size(image: bytes) -> tuple[int, int]:
    """Tiles across and down; an invalid size (RAM not yet set up) counts as a small room."""
    wide, high = image[offsets.ROOM_WIDTH_8PX] // 2, image[offsets.ROOM_HEIGHT_8PX] // 2
    return (wide, high) if (wide, high) in ((10, 8), (15, 11)) else (10, 8)


def grid_of(image: bytes, previous: Grid | None) -> Grid:
    """The grid of the current room; the previous object if nothing changed."""
    collisions = image[offsets.ROOM_COLLISIONS : offsets.ROOM_COLLISIONS + 176]
    wide, high = room_size(image)
    if previous is not None and previous.source == collisions and previous.width == wide * 2:
        return previous
    return Grid(collisions, wide, high)
