"""The rows of a run's table: one row for each finished epoch."""

from collections.abc import Callable
from datetime import datetime

from services.coordinator.domain.reasons import refusal, unshaped
from services.coordinator.domain.report import epoch_row
from services.coordinator.domain.reward_model_selection import check_over_optimisation
from services.coordinator.domain.run_view import EpochView, RunView
from services.coordinator.readmodels.judging_reports import JudgingReports
from services.coordinator.readmodels.run_cache import RunCache
from services.coordinator.readmodels.score_counters import ScoreCounters
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow, RunSummary
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import NotFound, Store


class EpochRows:
    """Computes rows and caches those of complete epochs. `now` is injected, so that a test owns the time."""

    def __init__(self, store: Store, scores: ScoreCounters, now: Callable[[], datetime]) -> None:
        self._store, self._scores, self._now = store, scores, now
        self._judgings = JudgingReports(store)
        self._complete: RunCache[dict[int, EpochRow]] = RunCache(dict)

    async def finished(self, view: RunView) -> list[EpochRow]:
        """The rows of all finished epochs, oldest first."""
        complete = self._complete.get(view.record)
        if not complete and any(epoch.complete for epoch in view.epochs):
            complete.update(await self._written(view))
        rows: list[EpochRow] = []
        for epoch in view.epochs:
            row = complete.get(epoch.epoch) or await self._row(view, epoch)
            if row is not None:
                rows.append(row)
        # The judges' report changes even after an epoch is complete: they write it again when their checks end.
        rows = await self._judgings.add_to(view.record.run, rows, self._now())
        complete.update({row.epoch: row for row in rows if view.epochs[row.epoch].complete})
        return rows

    async def _written(self, view: RunView) -> dict[int, EpochRow]:
        """The rows of complete epochs in the run's summary: counting a long run's scores again takes minutes."""
        try:
            summary = RunSummary.from_bytes(await self._store.get(keys.run_summary(view.record.run)))
        except (NotFound, ContractError):
            return {}
        if summary.created != view.record.created:  # of another run, from a store that was restored or edited by hand
            return {}
        known = [row for row in summary.epochs if row.epoch < len(view.epochs)]
        return {row.epoch: _explained(view, row) for row in known if _is_final(row, view.epochs[row.epoch])}

    def forget(self, run: RunId) -> None:
        """Free the memory of a run that has ended."""
        self._complete.forget(run)

    async def _row(self, view: RunView, epoch: EpochView) -> EpochRow | None:
        alarm = check_over_optimisation(view.epochs[: epoch.epoch + 1]).reason or None
        row = epoch_row(epoch, await self._scores.count(view.record.run, epoch.epoch), alarm)
        return row and _explained(view, row)


def _explained(view: RunView, row: EpochRow) -> EpochRow:
    """The row with its reasons. They follow from the cards, so rows of earlier versions get them, too."""
    so_far = view.epochs[: row.epoch + 1]
    return row.model_copy(update={"reason": refusal(so_far[-1]), "not_shaped": unshaped(view.record.config, so_far)})


def _is_final(row: EpochRow, epoch: EpochView) -> bool:
    """Whether a written row is that of the complete epoch: it was written after the last outcome and the card."""
    modelled = row.reward_model_passed is not None or epoch.card is None  # complete without a card: not judged
    return epoch.complete and row.segments_waiting == 0 and modelled
