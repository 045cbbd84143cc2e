"""When to retrain while scores stream in: after a pause in the stream, or after many scores, but not all the time.

A pure state machine: it is told the time and owns no timer.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DebounceConfig:
    """`quiet_s` without a score ends a burst; `most` scores need no pause; `rest_s` is the least time between two."""

    quiet_s: float = 5.0
    most: int = 100
    rest_s: float = 30.0
    least: int = 20


class Debounce:
    """Counts scores since the last retraining and says when the next is due. Times are seconds of one clock."""

    def __init__(self, config: DebounceConfig) -> None:
        """Nothing has come yet."""
        self._config = config
        self._new = 0
        self._last_score = 0.0
        self._last_run: float | None = None

    def score(self, now: float) -> None:
        """A score came."""
        self._new += 1
        self._last_score = now

    def due(self, now: float) -> bool:
        """Whether to retrain now."""
        if self._new < self._config.least:
            return False
        if self._last_run is not None and now - self._last_run < self._config.rest_s:
            return False
        return self._new >= self._config.most or now - self._last_score >= self._config.quiet_s

    def ran(self, now: float) -> None:
        """A retraining began; scores from now on count anew."""
        self._new = 0
        self._last_run = now
