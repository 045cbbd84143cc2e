"""Decides when to republish: after a quiet time without progress, then at growing intervals. Pure, without a clock.

Slow work is not lost work: a model that needs a minute for a segment would get its whole backlog again with each one.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

MAX_INTERVAL: Final = 10
"""In quiet times. With a larger value, a run stands still long after an outage has ended."""


PACE: Final = 2
"""The first interval, in the longest of the last steps of progress. With 1, each step that takes a little longer than
those before it would count as lost."""
REMEMBERED: Final = 20
"""Steps. Judges finish several segments together: the times between those are short."""


@dataclass(slots=True)
class ReplayBackoff:
    """The backoff of one run. A new coordinator first waits a quiet time: the work may be under way."""

    quiet: timedelta
    _stage: object = None
    _progress: object = None
    _progressed: datetime | None = None
    _since: datetime | None = None
    _interval: timedelta = field(default=timedelta(0))
    _steps: deque[timedelta] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def due(self, progress: object, now: datetime, stage: object = None) -> bool:
        """Whether to republish now. `progress` is any value that changes whenever the run makes progress.

        `stage` is a value that stays the same while comparable steps follow each other; None: no pace is learnt.
        """
        if self._since is None or now < self._since or (stage, progress) != (self._stage, self._progress):
            self._begin(progress, now, stage)
            return False
        if now - self._since < self._interval:
            return False
        self._since = now
        self._interval = min(self._interval * 2, self.quiet * MAX_INTERVAL)
        return True

    def _begin(self, progress: object, now: datetime, stage: object) -> None:
        """Wait from now on: there was progress, or the clock was set back."""
        if stage is None or stage != self._stage or self._progressed is None:
            self._steps.clear()
        else:
            self._steps.append(now - self._progressed)
        self._stage, self._progress, self._progressed, self._since = stage, progress, now, now
        longest = max(self._steps, default=timedelta(0))
        self._interval = min(max(self.quiet, PACE * longest), self.quiet * MAX_INTERVAL)
