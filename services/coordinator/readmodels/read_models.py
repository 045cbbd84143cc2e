"""All read models of the coordinator over one store."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from services.coordinator.readmodels.archived_rooms import read_archived_rooms
from services.coordinator.readmodels.ended_rows import EndedRows
from services.coordinator.readmodels.epoch_rows import EpochRows
from services.coordinator.readmodels.judge_replies import JudgeRepliesReader
from services.coordinator.readmodels.known_runs import KnownRuns
from services.coordinator.readmodels.run_notes import RunNotesReader
from services.coordinator.readmodels.run_views import RunViewReader
from services.coordinator.readmodels.score_counters import ScoreCounters
from services.coordinator.readmodels.segment_archives import SegmentArchives
from shared.contracts.ids import RunId
from shared.contracts.progress import ArchivedRoom, EpochRow, RunProgress
from shared.contracts.run import RunRecord
from shared.state.runs import RunRecords
from shared.state.saved_states import SavedStates
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.port import NotFound, ObjectEntry, Store

LISTING: Final = timedelta(seconds=30)
"""Between two listings of all runs. Listing 10,000 takes a third of a second of a core, so this takes one percent. A
run whose event was lost waits as long as any other lost event (`quiet_s`)."""


class ReadModels:
    """Records, views, score counts and epoch rows of all runs. `now` is injected, so that a test owns the time."""

    def __init__(self, store: Store, now: Callable[[], datetime], listing: timedelta = LISTING) -> None:
        self._store = store
        self.runs = RunRecords(store, lambda: now().timestamp())
        self.known = KnownRuns(self.runs, listing)
        self.views = RunViewReader(store)
        self.scores = ScoreCounters(store)
        self.rows = EpochRows(store, self.scores, now)
        self.ended = EndedRows(store)
        self.notes = RunNotesReader(store)
        self.archives = SegmentArchives(store)
        self.replies = JudgeRepliesReader(store)
        self.states = SavedStates(store)

    async def epochs(self, record: RunRecord) -> list[EpochRow]:
        """The rows of all finished epochs of a run, oldest first."""
        rows = await self.ended.read(record)
        return rows if rows is not None else await self.rows.finished(await self.views.read(record))

    async def segments(self, run: RunId, epoch: int) -> dict[ObjectEntry, keys.SegmentPlace]:
        """The recorded segments of an epoch."""
        return await list_segments(self._store, run, epoch)

    async def archived_rooms(self, run: RunId, epoch: int) -> list[ArchivedRoom]:
        """The rooms of the run's archive of states after an epoch."""
        return await read_archived_rooms(self._store, run, epoch)

    async def progress(self, run: RunId) -> RunProgress | None:
        """The progress that the reconciler wrote last, or None before its first pass; raises ContractError."""
        try:
            return RunProgress.from_bytes(await self._store.get(keys.progress(run)))
        except NotFound:
            return None

    def forget(self, run: RunId) -> None:
        """Free the memory of a run that has ended."""
        self.views.forget(run)
        self.rows.forget(run)
