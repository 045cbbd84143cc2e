"""Decides when to republish: after a quiet time without progress, then at growing intervals. Pure, without a clock."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

MAX_INTERVAL: Final = 10
"""In quiet times. With a larger value, a run stands still long after an outage has ended."""


@dataclass(slots=True)
class ReplayBackoff:
    """The backoff of one run. A new coordinator first waits a quiet time: the work may be under way."""

    quiet: timedelta
    _progress: object = None
    _since: datetime | None = None
    _interval: timedelta = field(default=timedelta(0))

    def due(self, progress: object, now: datetime) -> bool:
        """Whether to republish now. `progress` is any value that changes whenever the run makes progress."""
        if self._since is None or progress != self._progress:
            self._progress, self._since, self._interval = progress, now, self.quiet
            return False
        if now - self._since < self._interval:
            return False
        self._since = now
        self._interval = min(self._interval * 2, self.quiet * MAX_INTERVAL)
        return True
