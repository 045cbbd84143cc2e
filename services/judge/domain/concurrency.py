"""How many calls one route may have in flight: additive increase, multiplicative decrease.

A pure state machine: observations in, a limit out; it owns no task, no client and no clock.
Until the first overload the limit doubles per round (slow start), because the server's capacity is unknown.
"""

from dataclasses import dataclass


@dataclass
class Concurrency:
    """Limit between `least` and `most`. `now` is seconds of any monotonic clock."""

    most: int = 32
    least: int = 1
    start: int = 8
    shrink: float = 0.7  # nearer to 1 and an overloaded server stays so; much lower and it idles after each refusal
    pause_s: float = 1.0  # one overload is reported by many calls at once; only the first in this time counts
    _limit: float = 0.0
    _slow_start: bool = True
    _shrunk: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ValueError(f"limits {self.least} to {self.most} calls: need 1 <= least <= most")
        self._limit = float(min(max(self.start, self.least), self.most))

    @property
    def limit(self) -> int:
        """Calls allowed in flight."""
        return int(self._limit)

    def succeeded(self, in_flight: int) -> None:
        """A call came back. The limit grows only while it is in use, else it would grow without being tested."""
        if 2 * in_flight < self.limit:
            return
        self._limit = min(self.most, self._limit + (1.0 if self._slow_start else 1.0 / self._limit))

    def overloaded(self, now: float) -> None:
        """A call was refused (429, 503) or timed out: shrink once per pause."""
        if self._shrunk is not None and now - self._shrunk < self.pause_s:
            return
        self._shrunk, self._slow_start = now, False
        self._limit = max(float(self.least), self._limit * self.shrink)
