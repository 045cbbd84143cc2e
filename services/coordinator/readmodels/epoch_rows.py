"""The rows of a run's table: one row for each finished epoch."""

from collections.abc import Callable
from datetime import datetime

from services.coordinator.domain.report import epoch_row
from services.coordinator.domain.reward_model_selection import check_over_optimisation
from services.coordinator.domain.run_view import EpochView, RunView
from services.coordinator.readmodels.judging_reports import JudgingReports
from services.coordinator.readmodels.run_cache import RunCache
from services.coordinator.readmodels.score_counters import ScoreCounters
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow
from shared.store.port import Store


class EpochRows:
    """Computes rows and caches those of complete epochs. `now` is injected, so that a test owns the time."""

    def __init__(self, store: Store, scores: ScoreCounters, now: Callable[[], datetime]) -> None:
        self._scores, self._now = scores, now
        self._judgings = JudgingReports(store)
        self._complete: RunCache[dict[int, EpochRow]] = RunCache(dict)

    async def finished(self, view: RunView) -> list[EpochRow]:
        """The rows of all finished epochs, oldest first."""
        complete = self._complete.get(view.record)
        rows: list[EpochRow] = []
        for epoch in view.epochs:
            row = complete.get(epoch.epoch) or await self._row(view, epoch)
            if row is not None:
                rows.append(row)
        # The judges' report changes even after an epoch is complete: they write it again when their checks end.
        rows = await self._judgings.add_to(view.record.run, rows, self._now())
        complete.update({row.epoch: row for row in rows if view.epochs[row.epoch].complete})
        return rows

    def forget(self, run: RunId) -> None:
        """Free the memory of a run that has ended."""
        self._complete.forget(run)

    async def _row(self, view: RunView, epoch: EpochView) -> EpochRow | None:
        alarm = check_over_optimisation(view.epochs[: epoch.epoch + 1]).reason or None
        return epoch_row(epoch, await self._scores.count(view.record.run, epoch.epoch), alarm)
