"""When to ring again: after a quiet time without progress, then at growing intervals. Pure: time comes from outside."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

LONGEST: Final = 10
"""Times the quiet time: ringing more rarely would make an outage last longer than it has to."""


@dataclass(slots=True)
class Pace:
    """The rhythm of one run. A coordinator that has just started waits a quiet time, too: the work may be in hand."""

    quiet: timedelta
    _mark: object = None
    _since: datetime | None = None
    _interval: timedelta = field(default=timedelta(0))

    def due(self, mark: object, now: datetime) -> bool:
        """Whether to ring now. `mark` is anything that changes whenever the run gets on."""
        if self._since is None or mark != self._mark:
            self._mark, self._since, self._interval = mark, now, self.quiet
            return False
        if now - self._since < self._interval:
            return False
        self._since = now
        self._interval = min(self._interval * 2, self.quiet * LONGEST)
        return True
