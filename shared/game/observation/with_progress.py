"""The observation obs/v4: obs/v3, then what was achieved for good and the money, as rows of flags.

The same room is crossed in opposite directions at different moments of a game, and all that distinguishes these moments
is one chest or five rupees more. As parts of a scale (obs/v2) such differences are small numbers, and a policy confuses
the moments wherever it has not been before. Here one more is one flag more (a thermometer code).
"""

from bisect import bisect_right
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.game.decoding.state import GameState
from shared.game.observation import with_surroundings
from shared.game.observation.counters import COUNTERS, INDEX, UNKNOWN_COUNT, EpisodeCounters
from shared.game.observation.layout import UNKNOWN

VERSION: Final = "obs/v4"
MAX_FLAGS: Final = 16  # flags of one counter
RUPEES: Final = (1, 2, 3, 5, 8, 10, 15, 20, 25, 30, 40, 50, 75, 100, 200, 500)
"""The money from which each flag is 1."""
COUNTED: Final = (
    "items", "sword_levels", "heart_containers", "chests", "keys_found", "keys_used", "dungeon_items", "doors",
    "solved", "levers", "story", "payments", "trades", "dungeons", "essences",
)  # fmt: skip
"""The counters that are shown, in the order of their rows. They are written out because a version of the observation
never changes: counters.LASTING may."""
_FLAGS: Final = {name: min(COUNTERS[INDEX[name]].most, MAX_FLAGS) for name in COUNTED}
NAMES: Final = (
    *(f"{name}_from_{count}" for name, flags in _FLAGS.items() for count in range(1, flags + 1)),
    *(f"rupees_from_{rupees}" for rupees in RUPEES),
)
SIZE: Final = with_surroundings.SIZE + len(NAMES)

Floats = NDArray[np.float32]


class ProgressObservation:
    """The observations of one environment. Flags are kept until a counter or the money changes."""

    def __init__(self) -> None:
        self._seen: Floats = np.zeros(SIZE, np.float32)
        self._known: tuple[bytes, int | None] | None = None

    def of(self, seen: Floats, state: GameState, counted: EpisodeCounters) -> Floats:
        """Float32 (594,) of obs/v3 (361,), the present state and the episode's counters. The next call overwrites it.

        The flags of what the game cannot say are -1.
        """
        known = counted.packed, state.inventory.rupees
        if known != self._known:
            self._known = known
            self._seen[with_surroundings.SIZE :] = _flags(counted, state.inventory.rupees)
        self._seen[: with_surroundings.SIZE] = seen
        return self._seen


def _flags(counted: EpisodeCounters, rupees: int | None) -> list[float]:
    rows = [_row(counted.values[name], flags) for name, flags in _FLAGS.items()]
    money = [UNKNOWN] * len(RUPEES) if rupees is None else _row(bisect_right(RUPEES, rupees), len(RUPEES))
    return [flag for row in (*rows, money) for flag in row]


def _row(count: int, flags: int) -> list[float]:
    """As many ones as the count, then zeros."""
    if count == UNKNOWN_COUNT:
        return [UNKNOWN] * flags
    return [float(count > place) for place in range(flags)]
