"""Writes the reports of a run: progress.json, the figures and scores.jsonl of each epoch, and summary.json.

The reports are derived and overwritten. No decision reads them, and each can be written again from the commit objects.
"""

from collections.abc import Callable
from datetime import datetime

from services.coordinator.domain.lifecycle import ACTIVE
from services.coordinator.domain.report import run_progress, run_summary
from services.coordinator.domain.run_view import RunView
from services.coordinator.domain.score_counter import ScoreCounter
from services.coordinator.readmodels.read_models import ReadModels
from services.coordinator.reconcile import epoch_metrics
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow, RunProgress, RunSummary
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import NotFound, Store


class ReportWriter:
    """Keeps the reports of runs up to date; writes only what changed."""

    def __init__(self, store: Store, models: ReadModels, now: Callable[[], datetime]) -> None:
        self._store, self._models, self._now = store, models, now
        self._written: dict[RunId, RunSummary] = {}

    async def write(self, view: RunView, doing: str) -> None:
        """Write the progress, and the tables if an epoch changed. `doing` is one sentence for users."""
        now = self._now()
        progress = await self._progress(view, doing, now)
        await self._store.put(keys.progress(view.record.run), progress.to_bytes())
        if progress.assistance is not None:
            epoch_metrics.set_assistance(view.record.run, progress.assistance)
        await self._write_tables(view, now)

    async def update(self, view: RunView) -> None:
        """Write the tables of an ended run again if the judges' last figures have changed them.

        Write its progress as well if the coordinator that ended it died before: nothing else would correct it.
        """
        shown = await self._stored_progress(view)
        if shown is not None and shown.state != view.record.state:
            progress = await self._progress(view, f"The run is {view.record.state}.", self._now())
            await self._store.put(keys.progress(view.record.run), progress.to_bytes())
        stored = await self._stored(view)
        summary = run_summary(view, await self._models.rows.finished(view), self._now())
        if stored is None or not _same(stored, summary):
            await self._write_changed(stored, summary)

    def forget(self, run: RunId) -> None:
        """Free the memory of a run that has ended."""
        self._written.pop(run, None)

    async def _progress(self, view: RunView, doing: str, now: datetime) -> RunProgress:
        run, current = view.record.run, view.current
        counter, segments = ScoreCounter(), 0
        if current is not None:
            counter = await self._models.scores.count(run, current.epoch)
            segments = len(await self._models.segments(run, current.epoch))
        return run_progress(view, counter, segments, await self._models.views.heartbeat(run), doing, now)

    async def _stored_progress(self, view: RunView) -> RunProgress | None:
        """The progress in the store; None before the first, and if it cannot be read."""
        try:
            return await self._models.progress(view.record.run)
        except ContractError:
            return None

    async def _write_tables(self, view: RunView, now: datetime) -> None:
        run = view.record.run
        summary = run_summary(view, await self._models.rows.finished(view), now)
        # After a restart, the stored summary shows what is written: a long run has tens of thousands of scores to read.
        before = self._written.get(run) or await self._stored(view)
        if run in self._written and before is not None and _same(before, summary):
            return
        await self._write_changed(before, summary)
        self._set_metrics(view, summary)
        self._written[run] = summary

    async def _stored(self, view: RunView) -> RunSummary | None:
        """The summary in the store; None if it cannot be read.

        None also for that of another run, which a store that was restored or edited by hand may hold: the name of a
        deleted run stays taken.
        """
        try:
            stored = RunSummary.from_bytes(await self._store.get(keys.run_summary(view.record.run)))
        except (NotFound, ContractError):
            return None
        return stored if stored.created == view.record.created else None

    def _set_metrics(self, view: RunView, summary: RunSummary) -> None:
        """Show the run's newest finished epoch as metrics."""
        if not summary.epochs:
            return
        epoch_metrics.set_epoch(view.record.run, summary.epochs[-1], view.record.config.judge_interval)
        cards = [epoch.card for epoch in view.epochs if epoch.card is not None]
        if cards:
            epoch_metrics.set_card(cards[-1].document)

    async def _write_changed(self, before: RunSummary | None, summary: RunSummary) -> None:
        """Write the documents of epochs whose row changed, then the summary."""
        known = {row.epoch: (row, _scores_final(before, row)) for row in before.epochs} if before else {}
        for row in summary.epochs:
            final = _scores_final(summary, row)
            if known.get(row.epoch) != (row, final):
                await self._write_epoch(summary.run, row, final)
        await self._store.put(keys.run_summary(summary.run), summary.to_bytes())

    async def _write_epoch(self, run: RunId, row: EpochRow, scores_final: bool) -> None:
        await self._store.put(keys.evaluation_summary(run, row.epoch), row.to_bytes())
        if scores_final:
            lines = [scores.to_bytes() for scores in await self._models.scores.read_epoch(run, row.epoch)]
            await self._store.put(keys.scores_jsonl(run, row.epoch), b"".join(line + b"\n" for line in lines))


def _scores_final(summary: RunSummary, row: EpochRow) -> bool:
    """Whether the scores of an epoch are final: no segment waits, or the run has ended."""
    return row.segments_waiting == 0 or summary.state not in ACTIVE


def _same(before: RunSummary, after: RunSummary) -> bool:
    return before.model_copy(update={"updated": after.updated}) == after  # `updated` changes with every poll
