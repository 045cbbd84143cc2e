"""Decides when to train an interim model while scores arrive: after a pause or a burst, at a limited rate.

A pure state machine: callers pass the time; it owns no timer.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DebounceConfig:
    """A training is due after `quiet_s` without a score, or after `burst` scores.

    It also needs at least `min_scores` new scores, and `min_interval_s` since the last training.
    """

    quiet_s: float = 5.0
    burst: int = 100
    min_interval_s: float = 30.0
    min_scores: int = 20


class Debounce:
    """Counts the scores since the last training. All times are seconds of one clock."""

    def __init__(self, config: DebounceConfig) -> None:
        self._config = config
        self._new_scores = 0
        self._last_score = 0.0
        self._last_training: float | None = None

    def record_score(self, now: float) -> None:
        """Count a score that arrived now."""
        self._new_scores += 1
        self._last_score = now

    def due(self, now: float) -> bool:
        """Whether a training is due now."""
        if self._new_scores < self._config.min_scores:
            return False
        if self._last_training is not None and now - self._last_training < self._config.min_interval_s:
            return False
        return self._new_scores >= self._config.burst or now - self._last_score >= self._config.quiet_s

    def record_training(self, now: float) -> None:
        """Restart the count: a training began now."""
        self._new_scores = 0
        self._last_training = now
