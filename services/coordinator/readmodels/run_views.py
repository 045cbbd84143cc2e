"""Reads the view of a run from the store: one listing, then only the documents that are new."""

from datetime import datetime

from services.coordinator.domain.run_view import Committed, EpochView, RunView
from services.coordinator.readmodels.document_cache import Document, DocumentCache
from services.coordinator.readmodels.run_cache import RunCache
from shared.contracts.card import RewardModelCard
from shared.contracts.driver import DriverFailed, DriverHeartbeat, DriverStopped
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import NotFound, Store


class RunViewReader:
    """Reads RunViews. Complete epochs are cached, so a poll of a long run costs no more than one of a short run."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._documents = DocumentCache(store)
        self._complete: RunCache[dict[int, EpochView]] = RunCache(dict)

    async def read(self, record: RunRecord) -> RunView:
        """The view of a run as it is in the store now."""
        run, complete = record.run, self._complete.get(record)
        names = {entry.key for entry in await self._store.list(keys.run_prefix(run))}
        epochs: list[EpochView] = []
        while keys.epoch_start(run, len(epochs)) in names:
            epoch = complete.get(len(epochs)) or await self._epoch(record, len(epochs), names)
            epochs.append(epoch)
            if epoch.complete:
                complete[epoch.epoch] = epoch
        heartbeat = await self.heartbeat(run) if keys.driver_heartbeat(run) in names else None
        return RunView(
            record=record,
            epochs=tuple(epochs),
            last_heartbeat=heartbeat.time if heartbeat else None,
            failure=await self._failure(record, names),
            stopped_at=await self._stopped_at(record, names),
        )

    async def heartbeat(self, run: RunId) -> DriverHeartbeat | None:
        """The driver's last heartbeat, or None before the first. An unreadable heartbeat counts as missing."""
        try:
            return DriverHeartbeat.from_bytes(await self._store.get(keys.driver_heartbeat(run)))
        except (NotFound, ContractError):
            return None

    def forget(self, run: RunId) -> None:
        """Free the memory of a run that has ended."""
        self._complete.forget(run)

    async def _epoch(self, record: RunRecord, epoch: int, names: set[str]) -> EpochView:
        run = record.run
        start = await self._documents.get(record.created, keys.epoch_start(run, epoch), EpochStart)
        finished = await self._optional(record, keys.epoch_finished(run, epoch), EpochFinishedRecord, names)
        return EpochView(
            epoch=epoch,
            start=start,
            finished=finished,
            card=await self._optional(record, keys.reward_model_card(run, epoch), RewardModelCard, names),
            outcomes=await self._outcomes(finished.document) if finished is not None else 0,
        )

    async def _outcomes(self, finished: EpochFinishedRecord) -> int:
        run, epoch = finished.run, finished.epoch
        scored = {entry.key for entry in await self._store.list(keys.scores_prefix(run, epoch))}
        return sum(keys.score(run, epoch, segment.segment) in scored for segment in finished.segments)

    async def _failure(self, record: RunRecord, names: set[str]) -> str | None:
        failed = await self._optional(record, keys.driver_failed(record.run, record.attempt), DriverFailed, names)
        return failed.document.reason if failed else None

    async def _stopped_at(self, record: RunRecord, names: set[str]) -> datetime | None:
        stopped = await self._optional(record, keys.driver_stopped(record.run, record.attempt), DriverStopped, names)
        return stopped.document.time if stopped else None

    async def _optional(
        self, record: RunRecord, key: str, document_type: type[Document], names: set[str]
    ) -> Committed[Document] | None:
        return await self._documents.get(record.created, key, document_type) if key in names else None
