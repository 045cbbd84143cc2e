"""Circuit breaker of one route: a pure state machine without clock or connection.

closed --`threshold` failures in a row--> open --after `open_s`--> half-open --success--> closed
                                           ^------------- failure -----'
Half-open admits one probe at a time and refuses other calls until its outcome is known.
"""

from dataclasses import dataclass

from shared.contracts.driver import BreakerState


@dataclass
class Breaker:
    """Times are seconds of any monotonic clock; the caller passes them in."""

    threshold: int = 10  # lower, and a hiccup stops the route; higher, and each outage costs many timeouts
    open_s: float = 30.0
    failures: int = 0
    _opened: float | None = None
    _probe: float | None = None

    def state(self, now: float) -> BreakerState:
        """Return the state at `now`."""
        if self._opened is None:
            return "closed"
        return "half-open" if now - self._opened >= self.open_s else "open"

    def admit(self, now: float) -> bool:
        """Return whether a call may start. In the half-open state, an admitted call is the probe."""
        state = self.state(now)
        if state != "half-open":
            return state == "closed"
        # A probe without an outcome (cancelled) must not block the route permanently.
        if self._probe is not None and now - self._probe < self.open_s:
            return False
        self._probe = now
        return True

    def record_success(self) -> None:
        """Close: a call was answered."""
        self.failures, self._opened, self._probe = 0, None, None

    def record_failure(self, now: float) -> None:
        """Count a failed call; open at the threshold or after a failed probe."""
        self.failures += 1
        if self._probe is not None or (self._opened is None and self.failures >= self.threshold):
            self._opened, self._probe = now, None

    def release_probe(self) -> None:
        """Release the probe: a call that we cancelled says nothing about the route."""
        self._probe = None

    def seconds_until_probe(self, now: float) -> float:
        """Return the seconds until the next probe; 0 if a call may start now."""
        return 0.0 if self._opened is None else max(0.0, self._opened + self.open_s - now)
