"""The observation pixels/v1: the last four pictures, halved and grey, and two planes of memory.

Pictures stay uint8 (6, 72, 80): the learner scales them. Channels 0-3 are the last four pictures, newest first; 4 marks
the tiles of this room seen in this episode; 5 shows the map (room group and season), the place on it (row and column of
the room) and health in bands of flat grey, which a single picture does not show. Reward models and judges'
segments always use obs/v1.
"""

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from shared.game.decoding.grid import STRIDE
from shared.game.decoding.state import GameState
from shared.game.observation.trace import SEEN, EpisodeTrace

if TYPE_CHECKING:
    from shared.game.emulator.emulator import Emulator

VERSION: Final = "pixels/v1"
PICTURES: Final = 4
HEIGHT, WIDTH = 72, 80
TILE: Final = 8  # pixels of a tile in the halved picture
BANDS: Final = 6  # of 12 rows: group, season, row and column of the room, and two of health
GROUP_STEP, SEASON_STEP, PLACE_STEP = (
    36,
    60,
    17,
)  # grey values: they spread 8 groups, 5 seasons and 16 places over 0..255
STATUS_BAR: Final = 8  # rows of the halved picture above the room

Pixels = NDArray[np.uint8]


class PixelEncoder:
    """Encodes pixels/v1. Every step must be drawn."""

    version = VERSION
    shape: tuple[int, ...] = (PICTURES + 2, HEIGHT, WIDTH)

    def __init__(self, emulator: "Emulator") -> None:
        self._emulator = emulator
        self._planes: Pixels = np.zeros(self.shape, np.uint8)

    def begin(self, state: GameState, trace: EpisodeTrace) -> Pixels:
        """The first observation of an episode: its first picture, four times."""
        self._planes[:PICTURES] = grey_half(self._emulator.raw_screen())
        return self._remember(state, trace)

    def step(self, state: GameState, trace: EpisodeTrace) -> Pixels:
        """The observation after a step, uint8 (6, 72, 80), as a new array."""
        self._planes[1:PICTURES] = self._planes[: PICTURES - 1]
        self._planes[0] = grey_half(self._emulator.raw_screen())
        return self._remember(state, trace)

    def _remember(self, state: GameState, trace: EpisodeTrace) -> Pixels:
        seen = np.frombuffer(bytes(trace.here), np.uint8).reshape(-1, STRIDE)[:8, :10] == SEEN
        memory = self._planes[PICTURES]
        memory[STATUS_BAR:] = seen.repeat(TILE, 0).repeat(TILE, 1) * np.uint8(255)
        bands = self._planes[PICTURES + 1].reshape(BANDS, -1, WIDTH)
        bands[0], bands[1] = state.group * GROUP_STEP, ((state.season or 0) + (state.season is not None)) * SEASON_STEP
        bands[2], bands[3] = (state.room >> 4) * PLACE_STEP, (state.room & 15) * PLACE_STEP
        bands[4:] = min(state.inventory.health * 4, 255)
        return self._planes.copy()


def grey_half(picture: NDArray[np.uint32]) -> Pixels:
    """Every second pixel of a packed RGBA picture (144, 160) as grey, uint8 (72, 80)."""
    half = picture[::2, ::2]
    red, green, blue = half & 0xFF, half >> 8 & 0xFF, half >> 16 & 0xFF
    # Luma weights 0.30, 0.59, 0.11 in 256ths, so that whole numbers do.
    luma: Pixels = ((red * 77 + green * 151 + blue * 28) >> 8).astype(np.uint8)
    return luma
