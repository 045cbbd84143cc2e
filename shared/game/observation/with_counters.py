"""The observation obs/v2: the 128 features of obs/v1, then the event counters of the episode (counters/v1).

A reward model pays for counters. A critic that does not see them does not know what is still to be earned, so the pay
looks like noise to it.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.game.observation import counters, layout
from shared.game.observation.counters import EpisodeCounters

VERSION: Final = "obs/v2"
SIZE: Final = layout.SIZE + counters.SIZE


class CounterObservation:
    """The observations of one environment. Counters rarely change, so their features are kept until they do."""

    def __init__(self) -> None:
        self._packed = b""
        self._seen = np.zeros(SIZE, np.float32)

    def of(self, features: NDArray[np.float32], counted: EpisodeCounters) -> NDArray[np.float32]:
        """Float32 (148,) of the features of obs/v1, (128,), and the episode's counters. The next call overwrites it."""
        if counted.packed != self._packed:
            self._packed = counted.packed
            self._seen[layout.SIZE :] = counters.features(np.frombuffer(counted.packed, "<u2"))
        self._seen[: layout.SIZE] = features
        return self._seen
