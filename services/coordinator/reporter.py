"""Writes what people read about a run: progress.json, each epoch's figures, scores.jsonl and summary.json.

These are overwritten and derived: nobody decides by them, and each can be made again from the commit objects.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from services.coordinator import gauges
from services.coordinator.adapters.judgings import Judgings
from services.coordinator.adapters.recall import Recall
from services.coordinator.adapters.tallies import Tallies
from services.coordinator.adapters.views import Views
from services.coordinator.domain.lifecycle import ACTIVE
from services.coordinator.domain.report import progress, row, summary
from services.coordinator.domain.selection import verdict
from services.coordinator.domain.tally import Tally
from services.coordinator.domain.view import EpochView, RunView
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow, RunProgress, RunSummary
from shared.errors import ContractError
from shared.state.segments import recorded
from shared.store import keys
from shared.store.port import NotFound, Store

COMPARED: Final = {"updated"}  # fields that change without anything having happened


class Reporter:
    """Keeps a run's documents for people up to date; writes only what changed."""

    def __init__(self, store: Store, views: Views, tallies: Tallies, now: Callable[[], datetime]) -> None:
        self._store, self._views, self._tallies, self._now = store, views, tallies, now
        self._judgings = Judgings(store)
        self._written: dict[RunId, RunSummary] = {}
        self._shown: datetime | None = None  # when the epoch was finished whose figures are the metrics
        self._rows: Recall[dict[int, EpochRow]] = Recall(dict)

    async def report(self, view: RunView, doing: str) -> RunProgress:
        """Write the progress, and the tables if an epoch changed; return the progress."""
        now, run = self._now(), view.record.run
        shown = await self._progress(view, doing, now)
        await self._store.put(keys.progress(run), shown.to_bytes())
        await self._tables(view, now)
        return shown

    async def rows(self, view: RunView) -> list[EpochRow]:
        """The rows of all finished epochs. A row is final when its epoch is complete, and then kept."""
        kept = self._rows.of(view.record)
        rows: list[EpochRow] = []
        for epoch in view.epochs:
            line = kept.get(epoch.epoch) or await self._row(view, epoch)
            if line is not None:
                rows.append(line)
        # All but the judges' report is final: they write it after the last score, and again when their checks end.
        rows = await self._judgings.into(view.record.run, rows, self._now())
        kept.update({line.epoch: line for line in rows if view.epochs[line.epoch].complete})
        return rows

    async def amend(self, view: RunView) -> None:
        """Write those tables of an ended run again that the judges' last figures have changed."""
        try:
            stored = RunSummary.from_bytes(await self._store.get(keys.run_summary(view.record.run)))
        except (NotFound, ContractError):
            stored = None
        table = summary(view, await self.rows(view), self._now())
        if stored is None or not _same(stored, table):
            await self._write(stored, table)

    async def _row(self, view: RunView, epoch: EpochView) -> EpochRow | None:
        alarm = verdict(view.epochs[: epoch.epoch + 1]).reason or None
        return row(epoch, await self._tallies.of(view.record.run, epoch.epoch), alarm)

    def forget(self, run: RunId) -> None:
        """Free what is remembered about a run that has ended."""
        self._written.pop(run, None)
        self._rows.forget(run)

    async def _progress(self, view: RunView, doing: str, now: datetime) -> RunProgress:
        run, current = view.record.run, view.current
        tally, segments = Tally(), 0
        if current is not None:
            tally = await self._tallies.of(run, current.epoch)
            segments = len(await recorded(self._store, run, current.epoch))
        return progress(view, tally, segments, await self._views.heartbeat(run), doing, now)

    async def _tables(self, view: RunView, now: datetime) -> None:
        run = view.record.run
        table = summary(view, await self.rows(view), now)
        before = self._written.get(run)
        if before is not None and _same(before, table):
            return
        await self._write(before, table)
        self._show(view, table)
        self._written[run] = table

    def _show(self, view: RunView, table: RunSummary) -> None:
        """The newest finished epoch as metrics, unless another run's is newer."""
        ended = [epoch.finished.document.created for epoch in view.epochs if epoch.finished is not None]
        if not ended or (self._shown is not None and ended[-1] < self._shown):
            return
        self._shown = ended[-1]
        gauges.show(table.epochs[-1])
        for epoch in view.epochs:
            if epoch.card is not None:
                gauges.show_card(epoch.card.document)

    async def _write(self, before: RunSummary | None, table: RunSummary) -> None:
        """The documents of epochs whose row has changed, and then the table of the run."""
        known = {line.epoch: (line, _judged(before, line)) for line in before.epochs} if before else {}
        for line in table.epochs:
            judged = _judged(table, line)
            if known.get(line.epoch) != (line, judged):
                await self._epoch_documents(table.run, line, judged)
        await self._store.put(keys.run_summary(table.run), table.to_bytes())

    async def _epoch_documents(self, run: RunId, line: EpochRow, judged: bool) -> None:
        await self._store.put(keys.evaluation_summary(run, line.epoch), line.to_bytes())
        if judged:
            lines = [scores.to_bytes() for scores in await self._tallies.read(run, line.epoch)]
            await self._store.put(keys.scores_jsonl(run, line.epoch), b"".join(raw + b"\n" for raw in lines))


def _judged(table: RunSummary, line: EpochRow) -> bool:
    """Whether an epoch's scores are there: all, or those that came before the run ended."""
    return line.segments_waiting == 0 or table.state not in ACTIVE


def _same(before: RunSummary, after: RunSummary) -> bool:
    return before.model_dump(exclude=COMPARED) == after.model_dump(exclude=COMPARED)
