"""Adaptive limit of calls in flight: additive increase, multiplicative decrease (AIMD).

A pure state machine: observations in, a limit out; it owns no task, client or clock. Until the first overload the limit
doubles per round (slow start), because the server's capacity is unknown. Source: RFC 5681.
"""

from dataclasses import dataclass


@dataclass
class ConcurrencyController:
    """Limit between `minimum` and `maximum`. `now` is seconds of any monotonic clock."""

    maximum: int = 32
    minimum: int = 1
    initial: int = 8
    backoff: float = (
        0.7  # higher, and an overloaded server stays overloaded; much lower, and it idles after each refusal
    )
    cooldown_s: float = 1.0  # many calls report the same overload; only the first within this time counts
    _limit: float = 0.0
    _slow_start: bool = True
    _reduced: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.maximum:
            raise ValueError(f"limits {self.minimum} to {self.maximum} calls: need 1 <= minimum <= maximum")
        self._limit = float(min(max(self.initial, self.minimum), self.maximum))

    @property
    def limit(self) -> int:
        """Number of calls allowed in flight."""
        return int(self._limit)

    def record_success(self, in_flight: int) -> None:
        """Count an answered call. The limit grows only while at least half of it is in use, so that it is tested."""
        if 2 * in_flight < self.limit:
            return
        self._limit = min(self.maximum, self._limit + (1.0 if self._slow_start else 1.0 / self._limit))

    def record_overload(self, now: float) -> None:
        """Count a refused (429, 503) or timed-out call: reduce the limit once per cooldown."""
        if self._reduced is not None and now - self._reduced < self.cooldown_s:
            return
        self._reduced, self._slow_start = now, False
        self._limit = max(float(self.minimum), self._limit * self.backoff)
