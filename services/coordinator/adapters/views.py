"""Reads what is known about a run from the store: one listing, then only the documents that are new."""

from datetime import datetime

from services.coordinator.adapters.documents import Documents
from services.coordinator.adapters.recall import Recall
from services.coordinator.domain.view import EpochView, RunView
from shared.contracts.base import Contract
from shared.contracts.card import RewardModelCard
from shared.contracts.driver import DriverFailed, DriverHeartbeat, DriverStopped
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import NotFound, Store


class Views:
    """Makes RunViews. Complete epochs are remembered, so a long run costs no more per look than a short one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._documents = Documents(store)
        self._complete: Recall[dict[int, EpochView]] = Recall(dict)

    async def read(self, record: RunRecord) -> RunView:
        """The view of a run as it is in the store now."""
        run, complete = record.run, self._complete.of(record)
        names = {entry.key for entry in await self._store.list(keys.run_prefix(run))}
        epochs: list[EpochView] = []
        while keys.epoch_start(run, len(epochs)) in names:
            epoch = complete.get(len(epochs)) or await self._epoch(record, len(epochs), names)
            epochs.append(epoch)
            if epoch.complete:
                complete[epoch.epoch] = epoch
        beat = await self.heartbeat(run) if keys.driver_heartbeat(run) in names else None
        return RunView(
            record=record,
            epochs=tuple(epochs),
            last_sign=beat.time if beat else None,
            failure=await self._failure(record, names),
            stopped_at=await self._stopped(record, names),
        )

    async def heartbeat(self, run: RunId) -> DriverHeartbeat | None:
        """The driver's last sign of life, or None before the first. One that cannot be read is none: the next comes."""
        try:
            return DriverHeartbeat.from_bytes(await self._store.get(keys.driver_heartbeat(run)))
        except (NotFound, ContractError):
            return None

    def forget(self, run: RunId) -> None:
        """Free what is remembered about a run that has ended."""
        self._complete.forget(run)

    async def _epoch(self, record: RunRecord, epoch: int, names: set[str]) -> EpochView:
        run, created, get = record.run, record.created, self._documents.get
        finished_key, card_key = keys.epoch_finished(run, epoch), keys.reward_model_card(run, epoch)
        finished = await get(created, finished_key, EpochFinishedRecord) if finished_key in names else None
        return EpochView(
            epoch=epoch,
            start=await get(created, keys.epoch_start(run, epoch), EpochStart),
            finished=finished,
            card=await get(created, card_key, RewardModelCard) if card_key in names else None,
            outcomes=await self._outcomes(finished.document) if finished is not None else 0,
        )

    async def _outcomes(self, finished: EpochFinishedRecord) -> int:
        run, epoch = finished.run, finished.epoch
        scored = {entry.key for entry in await self._store.list(keys.scores_prefix(run, epoch))}
        return sum(keys.score(run, epoch, segment.segment) in scored for segment in finished.segments)

    async def _failure(self, record: RunRecord, names: set[str]) -> str | None:
        failed = await self._said(record, keys.driver_failed(record.run, record.attempt), DriverFailed, names)
        return failed.reason if isinstance(failed, DriverFailed) else None

    async def _stopped(self, record: RunRecord, names: set[str]) -> datetime | None:
        stopped = await self._said(record, keys.driver_stopped(record.run, record.attempt), DriverStopped, names)
        return stopped.time if isinstance(stopped, DriverStopped) else None

    async def _said(self, record: RunRecord, key: str, kind: type[Contract], names: set[str]) -> Contract | None:
        return (await self._documents.get(record.created, key, kind)).document if key in names else None
