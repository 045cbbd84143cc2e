"""How long a call of a route may take: at first as configured, then by how long its calls took. A pure state machine.

A slow server must not lose every call to a limit that was meant for a fast one. A route that answered quickly and then
hangs is out of order, not slow: it keeps its short limit.
"""

from collections import deque
from dataclasses import dataclass, field
from statistics import median

FACTOR = 4.0  # times the slowest recent call; lower, and a busy hour loses calls; higher, and a hang is noticed later
REMEMBERED = 20  # calls; more, and one slow hour is remembered for long


@dataclass
class CallTime:
    """The time limit of a route's calls, between `first_s` and `longest_s`."""

    first_s: float
    longest_s: float
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _raised_s: float = 0.0
    _given_up: bool = False

    @property
    def limit_s(self) -> float:
        """The longest time for one call."""
        return max(self.first_s, min(self.longest_s, max(FACTOR * self.slowest_s, self._raised_s)))

    @property
    def slowest_s(self) -> float:
        """The slowest of the last answers; 0 without one."""
        return max(self._recent, default=0.0)

    @property
    def typical_s(self) -> float | None:
        """The median of the last answers; None without one."""
        return median(self._recent) if self._recent else None

    def record_answer(self, seconds: float) -> None:
        """Note an answered call."""
        self._recent.append(seconds)
        self._raised_s, self._given_up = 0.0, False

    def record_timeout(self, limit_s: float) -> bool:
        """Note a call that took longer than `limit_s`; return whether this raised the limit.

        The limit doubles until a call succeeds: that finds the speed of a slow server within a few calls. A route that
        has never answered within `longest_s` gets its first limit again.
        """
        before = self.limit_s
        if limit_s < before:
            return False  # it began under an earlier limit, and another call has raised it since
        ceiling = 2 * FACTOR * self.slowest_s if self._recent else 0.0 if self._given_up else self.longest_s
        self._given_up = self._given_up or (not self._recent and limit_s >= self.longest_s)
        self._raised_s = 0.0 if self._given_up else min(2 * limit_s, ceiling)
        return self.limit_s > before
