"""The observation obs/v3: obs/v2, then the tiles around the hero, the lasting state of the room, and its likeness.

The tiles are a window of 7 x 7 around the hero's own, so a wall beside him looks the same in every room. Rooms are
described by what lasts in them and by their tiles: in another world the same kind of room has the same numbers, which
the bits of a room's number do not.
"""

import hashlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.game.decoding.grid import HAZARD, SOLID, STRIDE, Grid, tile_of
from shared.game.decoding.objects import GameObject
from shared.game.decoding.state import GameState
from shared.game.observation import with_counters
from shared.game.observation.layout import UNKNOWN
from shared.game.observation.trace import UNSEEN, EpisodeTrace
from shared.game.ram import offsets

VERSION: Final = "obs/v3"
RADIUS: Final = 3  # tiles to each side: with more, most of the window lies outside of a room of 10 x 8 tiles
SPAN: Final = 2 * RADIUS + 1
PLANES: Final = ("solid", "rare", "unseen", "thing")
"""Of each tile: the solid share of it, -1 for a hole or water; 1 / the number of such tiles in the room; 1 if not stood
on in this episode; 1 for an enemy, 0.5 for a thing to pick up, -1 for somebody to talk to."""
FLAGS: Final = 8  # bits of the room's flag byte: doors opened, visited, treasures taken, solved
LIKENESS: Final = 8
TRADE_STEPS: Final = 12  # of the longest trading sequence
_OFFSETS: Final = range(-RADIUS, RADIUS + 1)
NAMES: Final = (
    *(f"{plane}_{down:+d}_{right:+d}" for plane in PLANES for down in _OFFSETS for right in _OFFSETS),
    *(f"room_flag_{bit}" for bit in range(FLAGS)),
    "trade_step",
    *(f"room_likeness_{number}" for number in range(LIKENESS)),
)  # fmt: skip
ADDED: Final = len(NAMES)
SIZE: Final = with_counters.SIZE + ADDED

_ROWS, _COLUMNS = 11, STRIDE
_WINDOW: Final = slice(with_counters.SIZE, with_counters.SIZE + len(PLANES) * SPAN * SPAN)
_ROOM: Final = slice(_WINDOW.stop, SIZE)
_SOLID_SHARE: Final = np.array(
    [-1.0 if value == HAZARD else 1.0 if value in SOLID else (value & 15).bit_count() / 4 * (value < HAZARD)
     for value in range(256)],
    np.float32,
)  # fmt: skip
# For each metatile LIKENESS signs without order, so that different tiles seldom add up to the same mean.
_SIGNS: Final = np.array(
    [[1.0 if byte & 1 else -1.0 for byte in hashlib.sha256(bytes([one])).digest()[:LIKENESS]] for one in range(256)],
    np.float32,
)

Floats = NDArray[np.float32]


class Surroundings:
    """The observations of one environment. What changes with the room alone is kept until it does."""

    def __init__(self) -> None:
        self._seen: Floats = np.zeros(SIZE, np.float32)
        self._planes: Floats = np.zeros((len(PLANES), _ROWS + 2 * RADIUS, _COLUMNS + 2 * RADIUS), np.float32)
        self._room = self._planes[:, RADIUS : RADIUS + _ROWS, RADIUS : RADIUS + _COLUMNS]
        self._grid: Grid | None = None
        self._tiles, self._likeness = b"", np.zeros(LIKENESS, np.float32)
        self._crowded = False

    def of(self, seen: Floats, state: GameState, image: bytes, trace: EpisodeTrace) -> Floats:
        """Float32 (361,) of obs/v2 (148,) and the present state. The next call overwrites it."""
        grid = state.grid
        tiles = image[offsets.ROOM_LAYOUT : offsets.ROOM_LAYOUT + _ROWS * STRIDE]
        if grid is not self._grid or tiles != self._tiles:
            self._enter(grid, tiles)
        across, down = grid.width // 2, grid.height // 2
        here = np.frombuffer(bytes(trace.here), np.uint8).reshape(_ROWS, STRIDE)
        self._room[2, :down, :across] = here[:down, :across] == UNSEEN
        self._place(state)
        column, row = tile_of(state.x, state.y)
        column, row = min(column, across - 1), min(row, down - 1)
        self._seen[: with_counters.SIZE] = seen
        self._seen[_WINDOW] = self._planes[:, row : row + SPAN, column : column + SPAN].ravel()
        self._seen[_ROOM] = (*_flags(state), _trade(state), *self._likeness)
        return self._seen

    def _enter(self, grid: Grid, tiles: bytes) -> None:
        """The room or its tiles changed."""
        self._grid, self._tiles = grid, tiles
        across, down = grid.width // 2, grid.height // 2
        solid = _SOLID_SHARE[np.frombuffer(grid.source, np.uint8).reshape(_ROWS, STRIDE)[:down, :across]]
        numbers = np.frombuffer(tiles, np.uint8).reshape(_ROWS, STRIDE)[:down, :across]
        self._planes[:] = 0
        self._room[0, :down, :across] = solid
        self._room[1, :down, :across] = 1 / np.bincount(numbers.ravel(), minlength=256)[numbers]
        self._likeness = _SIGNS[numbers.ravel()].mean(0)
        self._crowded = False

    def _place(self, state: GameState) -> None:
        """Mark the objects of the room."""
        if self._crowded:
            self._room[3] = 0
        marked: tuple[tuple[float, tuple[GameObject, ...]], ...] = (
            (-1.0, state.talkables),
            (0.5, state.pickups),
            (1.0, state.enemies),
            (1.0, state.dangers),
        )
        for mark, things in marked:
            for thing in things:
                self._crowded = True
                self._room[3, min(thing.y >> 4, _ROWS - 1), min(thing.x >> 4, _COLUMNS - 1)] = mark


def _flags(state: GameState) -> list[float]:
    flags = state.progress.room(state.group, state.room)
    return [float(flags >> bit & 1) for bit in range(FLAGS)]


def _trade(state: GameState) -> float:
    trade = state.inventory.trade
    return float(UNKNOWN) if trade is None else min(trade / TRADE_STEPS, 1.0)
