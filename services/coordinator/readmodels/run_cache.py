"""A cache with one value per run, so that a poll reads only what is new."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from services.coordinator.domain.lifecycle import ACTIVE
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord

Value = TypeVar("Value")
MAX_ENDED: Final = 4
"""Ended runs that stay cached, most recently used first. A long run takes tens of megabytes, and users open many."""
UNUSED_S: Final = 600.0
"""Seconds without use after which an active run is dropped. The leader reads each run every few seconds; a coordinator
without the lease does not learn that a run has ended, unless a user asks for it."""


@dataclass(slots=True)
class _CacheEntry(Generic[Value]):
    created: datetime
    ended: bool
    used: float
    value: Value


class RunCache(Generic[Value]):
    """Keeps the value of every active run in use, and of the MAX_ENDED most recently used ended runs.

    A record with another time of creation is another run: its value starts empty. The name of a deleted run stays
    taken, but a store that was restored or edited by hand may hold another run of that name.
    """

    def __init__(self, make: Callable[[], Value], clock: Callable[[], float] = time.monotonic) -> None:
        """`make` returns the initial value of a run; `clock` is monotonic, in seconds."""
        self._make, self._clock = make, clock
        self._entries: OrderedDict[RunId, _CacheEntry[Value]] = OrderedDict()

    def get(self, record: RunRecord) -> Value:
        """The cached value of the run with this record."""
        entry = self._entries.get(record.run)
        if entry is None or entry.created != record.created:
            entry = self._entries[record.run] = _CacheEntry(record.created, False, 0.0, self._make())
        entry.ended, entry.used = record.state not in ACTIVE, self._clock()
        self._entries.move_to_end(record.run)
        self._drop(entry.used)
        return entry.value

    def _drop(self, now: float) -> None:
        ended = [run for run, one in self._entries.items() if one.ended]
        unused = [run for run, one in self._entries.items() if not one.ended and now - one.used > UNUSED_S]
        for run in ended[:-MAX_ENDED] + unused:
            del self._entries[run]

    def forget(self, run: RunId) -> None:
        """Drop the value of a run."""
        self._entries.pop(run, None)
