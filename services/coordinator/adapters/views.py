"""Reads what is known about a run from the store: one listing, then only the documents that are new."""

from datetime import datetime

from services.coordinator.adapters.documents import Documents
from services.coordinator.domain.view import EpochView, RunView
from shared.contracts.base import Contract
from shared.contracts.card import RewardModelCard
from shared.contracts.driver import DriverFailed, DriverHeartbeat, DriverStopped
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.store import keys
from shared.store.port import NotFound, Store


class Views:
    """Makes RunViews. Complete epochs are remembered, so a long run costs no more per look than a short one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._documents = Documents(store)
        self._complete: dict[RunId, dict[int, EpochView]] = {}

    async def read(self, record: RunRecord) -> RunView:
        """The view of a run as it is in the store now."""
        run = record.run
        names = {entry.key for entry in await self._store.list(keys.run_prefix(run))}
        epochs: list[EpochView] = []
        while keys.epoch_start(run, len(epochs)) in names:
            epochs.append(await self._epoch(run, len(epochs), names))
        beat = await self.heartbeat(run) if keys.driver_heartbeat(run) in names else None
        return RunView(
            record=record,
            epochs=tuple(epochs),
            last_sign=beat.time if beat else None,
            failure=await self._failure(record, names),
            stopped_at=await self._stopped(record, names),
        )

    async def heartbeat(self, run: RunId) -> DriverHeartbeat | None:
        """The driver's last sign of life, or None before the first."""
        try:
            return DriverHeartbeat.from_bytes(await self._store.get(keys.driver_heartbeat(run)))
        except NotFound:
            return None

    def forget(self, run: RunId) -> None:
        """Free what is remembered about a run that has ended."""
        self._complete.pop(run, None)

    async def _epoch(self, run: RunId, epoch: int, names: set[str]) -> EpochView:
        remembered = self._complete.setdefault(run, {}).get(epoch)
        if remembered is not None:
            return remembered
        start = await self._documents.get(keys.epoch_start(run, epoch), EpochStart)
        finished_key, card_key = keys.epoch_finished(run, epoch), keys.reward_model_card(run, epoch)
        view = EpochView(
            epoch=epoch,
            start=start,
            finished=await self._documents.get(finished_key, EpochFinishedRecord) if finished_key in names else None,
            card=await self._documents.get(card_key, RewardModelCard) if card_key in names else None,
            outcomes=await self._outcomes(run, epoch) if finished_key in names else 0,
        )
        if view.complete:
            self._complete[run][epoch] = view
        return view

    async def _outcomes(self, run: RunId, epoch: int) -> int:
        finished = await self._documents.get(keys.epoch_finished(run, epoch), EpochFinishedRecord)
        scored = {entry.key for entry in await self._store.list(keys.scores_prefix(run, epoch))}
        return sum(keys.score(run, epoch, segment.segment) in scored for segment in finished.document.segments)

    async def _failure(self, record: RunRecord, names: set[str]) -> str | None:
        failed = await self._said(keys.driver_failed(record.run, record.attempt), DriverFailed, names)
        return failed.reason if isinstance(failed, DriverFailed) else None

    async def _stopped(self, record: RunRecord, names: set[str]) -> datetime | None:
        stopped = await self._said(keys.driver_stopped(record.run, record.attempt), DriverStopped, names)
        return stopped.time if isinstance(stopped, DriverStopped) else None

    async def _said(self, key: str, kind: type[Contract], names: set[str]) -> Contract | None:
        return (await self._documents.get(key, kind)).document if key in names else None
