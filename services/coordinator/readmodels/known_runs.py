"""The runs that may need work, so that a pass reads those and not every record of the store.

A listing finds what other programs wrote: runs created or resumed through another replica or by hand, deleted runs, a
restored store. Between two listings, the leader reads the runs that it knows to be active, and events add others.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Final

from services.coordinator.domain.lifecycle import ACTIVE
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.state.runs import RunRecords

WATCHED: Final = timedelta(minutes=30)
"""After the end of a run. Canaries and late segments of a busy server take minutes; figures after this are lost."""


class KnownRuns:
    """Active runs of this store's coordinators, and those that ended recently, by the newest record seen.

    `listing` is the longest time between two listings of all runs.
    """

    def __init__(self, runs: RunRecords, listing: timedelta) -> None:
        self._runs, self._listing = runs, listing
        self._known: dict[RunId, RunRecord] = {}
        self._seen_while_listing: dict[RunId, RunRecord] = {}
        self._listed: tuple[int, datetime] | None = None
        self._lock = asyncio.Lock()

    async def refresh(self, fence: int, now: datetime) -> None:
        """List all runs if this leader has not done so for `listing`; raises Transient."""
        async with self._lock:
            if self._is_fresh(fence, now):
                return
            self._seen_while_listing = {}
            listed = {record.run: record for record in await self._runs.all()}
            # A listing may be older than what a command of this process wrote meanwhile.
            for run, record in self._seen_while_listing.items():
                if run not in listed or is_older(listed[run], record):
                    listed[run] = record
            self._known = {run: record for run, record in listed.items() if may_need_work(record, now)}
            self._listed = (fence, now)

    def observe(self, record: RunRecord) -> None:
        """Take note of a record that was read or written."""
        for seen in (self._known, self._seen_while_listing):
            before = seen.get(record.run)
            if before is None or not is_older(record, before):
                seen[record.run] = record

    def forget(self, run: RunId) -> None:
        """Drop a run that is gone."""
        self._known.pop(run, None)
        self._seen_while_listing.pop(run, None)

    def clear(self) -> None:
        """Forget all runs: without the lease, this coordinator moves none on, and a new lease begins with a listing."""
        self._known, self._seen_while_listing, self._listed = {}, {}, None

    def active(self) -> list[RunRecord]:
        """The runs that a coordinator must move on, by name."""
        return [record for _, record in sorted(self._known.items()) if record.state in ACTIVE and not record.external]

    def ended_recently(self, now: datetime) -> list[RunRecord]:
        """The runs that ended in the last half hour, by name."""
        known = sorted(self._known.items())
        return [record for _, record in known if record.state not in ACTIVE and now - record.updated <= WATCHED]

    def _is_fresh(self, fence: int, now: datetime) -> bool:
        """Whether the last listing still counts. A clock that was set back must not postpone the next one."""
        if self._listed is None:
            return False
        listed_with, listed_at = self._listed
        return listed_with == fence and timedelta() <= now - listed_at < self._listing


def is_older(record: RunRecord, than: RunRecord) -> bool:
    """Whether `than` is a later revision of the same run.

    The name of a deleted run stays taken; another time of creation means that the store was restored or edited by hand.
    """
    return record.created == than.created and record.revision < than.revision


def may_need_work(record: RunRecord, now: datetime) -> bool:
    """Whether a coordinator moves the run on, or still writes its reports."""
    if record.state in ACTIVE:
        return not record.external
    return now - record.updated <= WATCHED
