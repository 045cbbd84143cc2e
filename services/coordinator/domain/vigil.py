"""How long a driver was really watched in silence. Pure: time comes from outside.

A clock alone cannot tell: after a machine was suspended, or a store was away, driver and coordinator both stood still,
and the coordinator may look before the driver's next heartbeat. So only time between looks counts.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

LONGEST_GAP: Final = timedelta(seconds=60)
"""Between two looks no more than this counts as watched. Less than `interval_s` may be (60 s) would find a dead trainer
late; as much as `silence_s` would take a suspended machine for a dead trainer again."""


@dataclass(slots=True)
class Vigil:
    """The watch over one run. A coordinator that has just started has watched for no time at all."""

    _sign: object = None
    _looked: datetime | None = None
    _silent: timedelta = timedelta(0)

    def look(self, sign: object, now: datetime) -> timedelta:
        """For how long this sign of life has been watched without a change."""
        if self._looked is None or sign != self._sign:
            self._silent = timedelta(0)
        else:
            self._silent += min(max(now - self._looked, timedelta(0)), LONGEST_GAP)
        self._sign, self._looked = sign, now
        return self._silent
