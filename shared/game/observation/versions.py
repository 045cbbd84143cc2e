"""The observations of features, by version. Each shows what the one before it shows, and more."""

from collections.abc import Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.game.decoding.state import GameState
from shared.game.observation import counters, layout, with_counters, with_progress, with_surroundings
from shared.game.observation.counters import EpisodeCounters
from shared.game.observation.trace import EpisodeTrace
from shared.game.observation.with_counters import CounterObservation
from shared.game.observation.with_progress import ProgressObservation
from shared.game.observation.with_surroundings import Surroundings

Floats = NDArray[np.float32]

_ADDED: Final[Mapping[str, tuple[str, ...]]] = {
    layout.VERSION: tuple(layout.INDEX),
    with_counters.VERSION: tuple(f"counter_{name}" for name in counters.NAMES),  # some have the name of a feature
    with_surroundings.VERSION: with_surroundings.NAMES,
    with_progress.VERSION: with_progress.NAMES,
}
_NAMES: Final = dict(zip(_ADDED, accumulate(_ADDED.values()), strict=True))
FEATURES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(_NAMES)
"""Names of the numbers that a policy sees."""
_ORDER: Final = list(FEATURES)


class FeatureObservation:
    """The observations of one environment, of one of these versions."""

    def __init__(self, version: str) -> None:
        """With another observation, such as pictures, it shows the features alone."""
        added = _ORDER[: _ORDER.index(version) + 1] if version in FEATURES else ()
        self._counters = CounterObservation() if with_counters.VERSION in added else None
        self._surroundings = Surroundings() if with_surroundings.VERSION in added else None
        self._progress = ProgressObservation() if with_progress.VERSION in added else None

    def of(
        self, features: Floats, state: GameState, image: bytes, trace: EpisodeTrace, counted: EpisodeCounters
    ) -> Floats:
        """Float32 (D,) of the features of obs/v1, (128,), and where the episode stands. The next call overwrites it."""
        seen = features
        if self._counters is not None:
            seen = self._counters.of(seen, counted)
        if self._surroundings is not None:
            seen = self._surroundings.of(seen, state, image, trace)
        if self._progress is not None:
            seen = self._progress.of(seen, state, counted)
        return seen
