"""How long a driver was observed without a new heartbeat. Pure: the caller gives the time.

A clock alone is not enough: after the machine was suspended or the store was away, driver and coordinator both stood
still, and the coordinator may poll before the driver's next heartbeat. So only time between two polls counts.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

MAX_GAP: Final = timedelta(seconds=60)
"""The most that counts between two polls. Below `interval_s` (at most 60 s), a dead trainer is found late; as long as
`silence_s`, a suspended machine counts as a dead trainer."""


@dataclass(slots=True)
class SilenceTimer:
    """The timer of one run. It starts at zero when the coordinator starts."""

    _sign: object = None
    _polled: datetime | None = None
    _silence: timedelta = timedelta(0)

    def observe(self, sign: object, now: datetime) -> timedelta:
        """How long this sign of life has been observed without a change."""
        if self._polled is None or sign != self._sign:
            self._silence = timedelta(0)
        else:
            self._silence += min(max(now - self._polled, timedelta(0)), MAX_GAP)
        self._sign, self._polled = sign, now
        return self._silence
