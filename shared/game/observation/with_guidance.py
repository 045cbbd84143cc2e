"""The part of a guided run's observation that shows a model's suggestion. It follows the features and counters.

Runs without guidance have no such part: their observations are unchanged. Without a suggestion all its values are 0.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.game.decoding.names import ACTIONS

NAMES: Final = (*(f"suggested_{action}" for action in ACTIONS), "suggestion_freshness", "suggestion_confidence")
"""1 for the suggested action; the share of its time that is left, (0, 1]; the model's confidence, [0, 1]."""
SIZE: Final = len(NAMES)


class GuidedObservation:
    """The observations of one environment of a guided run."""

    def __init__(self, size: int) -> None:
        """`size` is the number of features without the suggestion."""
        self._seen = np.zeros(size + SIZE, np.float32)
        self._empty = True

    def of(self, features: NDArray[np.float32], suggestion: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """Float32 (size + SIZE,) of the features and `suggestion` (SIZE,), or zeros. The next call overwrites it."""
        self._seen[:-SIZE] = features
        if suggestion is not None:
            self._seen[-SIZE:], self._empty = suggestion, False
        elif not self._empty:
            self._seen[-SIZE:], self._empty = 0.0, True
        return self._seen


def suggestion_features(action: int, freshness: float, confidence: float) -> NDArray[np.float32]:
    """Float32 (SIZE,) of one suggestion."""
    part = np.zeros(SIZE, np.float32)
    part[action], part[-2:] = 1.0, (freshness, confidence)
    return part
