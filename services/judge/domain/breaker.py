"""Circuit breaker of one route: a pure state machine that owns neither clock nor connection.

closed --`threshold` failures in a row--> open --after `open_s`--> half-open --success--> closed
                                           ^------------- failure -----'
Half-open lets one call through at a time; the others are refused until its outcome is known.
"""

from dataclasses import dataclass
from typing import Literal

State = Literal["closed", "open", "half-open"]


@dataclass
class Breaker:
    """Times are seconds of any monotonic clock, given by the caller."""

    threshold: int = 10  # too low and a short hiccup stops the route; too high and each outage costs many timeouts
    open_s: float = 30.0
    failures: int = 0
    _opened: float | None = None
    _probe: float | None = None

    def state(self, now: float) -> State:
        """The state as seen from outside."""
        if self._opened is None:
            return "closed"
        return "half-open" if now - self._opened >= self.open_s else "open"

    def admit(self, now: float) -> bool:
        """Whether a call may start now. A True while half-open makes it the probe."""
        state = self.state(now)
        if state != "half-open":
            return state == "closed"
        # A probe whose outcome never came (cancelled) must not block the route for good.
        if self._probe is not None and now - self._probe < self.open_s:
            return False
        self._probe = now
        return True

    def record_success(self) -> None:
        """A call came back with an answer: close."""
        self.failures, self._opened, self._probe = 0, None, None

    def record_failure(self, now: float) -> None:
        """A call failed: count it, and open at the threshold or when the probe failed."""
        self.failures += 1
        if self._probe is not None or (self._opened is None and self.failures >= self.threshold):
            self._opened, self._probe = now, None

    def release_probe(self) -> None:
        """A call ended without saying anything about the route (cancelled by us): give the probe back."""
        self._probe = None

    def seconds_until_probe(self, now: float) -> float:
        """Seconds until a call may be tried; 0 when one may now."""
        return 0.0 if self._opened is None else max(0.0, self._opened + self.open_s - now)
