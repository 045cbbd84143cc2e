"""What is remembered of runs, so that a look costs only what is new."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from services.coordinator.domain.lifecycle import ACTIVE
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord

Value = TypeVar("Value")
ENDED: Final = 4
"""Ended runs that are remembered, those looked at last. A long run takes tens of megabytes, and people look at many."""


@dataclass(slots=True)
class _Kept(Generic[Value]):
    created: datetime
    ended: bool
    value: Value


class Recall(Generic[Value]):
    """One value for each run: for as long as it is active, and while it is one of the last that were looked at.

    A run that was deleted and made again under the same name is another run: nothing is remembered of it.
    """

    def __init__(self, make: Callable[[], Value]) -> None:
        """`make` gives the value of a run that nothing is known about."""
        self._make = make
        self._kept: OrderedDict[RunId, _Kept[Value]] = OrderedDict()

    def of(self, record: RunRecord) -> Value:
        """What is remembered of the run with this record."""
        kept = self._kept.get(record.run)
        if kept is None or kept.created != record.created:
            kept = self._kept[record.run] = _Kept(record.created, False, self._make())
        kept.ended = record.state not in ACTIVE
        self._kept.move_to_end(record.run)
        ended = [run for run, one in self._kept.items() if one.ended]
        for run in ended[:-ENDED]:
            del self._kept[run]
        return kept.value

    def forget(self, run: RunId) -> None:
        """Remember nothing of a run."""
        self._kept.pop(run, None)
