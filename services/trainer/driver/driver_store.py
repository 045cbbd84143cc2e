"""The driver's side of the store: orders in; checkpoints, segments' list and accounts out. Patient with a store that
is away, because an epoch of hours must not be lost to a minute without storage.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import structlog

from services.trainer.documents import CheckpointPointer, DriverName, Heartbeat, checkpoint, latest_checkpoint
from services.trainer.domain.episodes import segment_at
from services.trainer.driver.blocking_store import BlockingStore
from shared.contracts.base import sha256
from shared.contracts.driver import DriverStopped
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, RewardModelRef, SegmentRef
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId
from shared.contracts.run import RunRecord
from shared.errors import ContractError, DigestMismatch, Permanent, Transient
from shared.state.epochs import first_unfinished_epoch
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.port import AlreadyExists, NotFound

log = structlog.get_logger(__name__)

T = TypeVar("T")
PATIENCE_S = 900.0  # longer outages end the driver; it is started again and resumes from its last checkpoint
PAUSES_S = (0.5, 1, 2, 5, 10)


class DriverStore:
    """Everything that one run's driver reads and writes."""

    def __init__(
        self, store: BlockingStore, run: RunId, driver: str, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.store = store
        self.run = run
        self.driver = DriverName(driver)
        self._sleep = sleep
        self._runs = RunRecords(store.store)

    def read_record(self) -> RunRecord:
        """The newest revision of the run's record."""
        return self.store.wait(self._runs.latest(self.run))

    def next_order(self) -> EpochStart | None:
        """The oldest order without an account, or None."""
        prefix = keys.epochs_prefix(self.run)
        names = {entry.key for entry in self.retry(lambda: self.store.list(prefix))}
        key = keys.epoch_start(self.run, first_unfinished_epoch(self.run, names))
        return EpochStart.from_bytes(self._get(key)) if key in names else None

    def read_reward_model(self, ref: RewardModelRef | None) -> bytes | None:
        """The weights that an order names, checked against the order's digest."""
        if ref is None:
            return None
        return self._get(ref.weights_key, ref.weights_digest)

    def resume_checkpoint(self, epoch: int) -> tuple[str, bytes] | None:
        """Digest and bytes of the checkpoint from which `epoch` goes on: its own newest, or the last epoch's final.

        None only for the first epoch of a run. Raises Permanent if a later epoch has no checkpoint to go on from.
        """
        own = self._own_checkpoint(epoch)
        if own is not None or epoch == 0:
            return own
        finished = EpochFinishedRecord.from_bytes(self._get(keys.epoch_finished(self.run, epoch - 1)))
        return finished.checkpoint_digest, self._get(finished.checkpoint_key, finished.checkpoint_digest)

    def _own_checkpoint(self, epoch: int) -> tuple[str, bytes] | None:
        """The newest checkpoint from within an epoch; None if there is none, or not the one that the pointer names."""
        pointer = self.checkpoint_pointer(epoch)
        if pointer is None:
            return None
        try:
            return pointer.digest, self._get(pointer.key, pointer.digest)
        except (NotFound, DigestMismatch) as error:  # e.g. a backup that was copied while the driver worked
            log.warning("checkpoint is not there: the epoch begins again", epoch=epoch, error=str(error))
            return None

    def checkpoint_pointer(self, epoch: int) -> CheckpointPointer | None:
        """The newest checkpoint from within an epoch, or None; None also where nothing says which one it is."""
        try:
            pointer = CheckpointPointer.from_bytes(self._get(latest_checkpoint(self.run, epoch)))
        except NotFound:
            return None
        except ContractError as error:
            log.warning("pointer to the checkpoint cannot be read: the epoch begins again", error=str(error))
            return None
        if (pointer.run, pointer.epoch) != (self.run, epoch):
            raise Permanent(f"{latest_checkpoint(self.run, epoch)} is of run {pointer.run}: remove it and resume")
        return pointer

    def save_checkpoint(self, data: bytes, epoch: int, iteration: int, steps: int) -> CheckpointPointer:
        """Store a checkpoint, then point to it; a crash between the two leaves the former one in force."""
        digest = Digest(sha256(data))
        key = checkpoint(self.run, epoch, self.driver, iteration, digest)
        self.retry(lambda: self.store.put(key, data))
        pointer = CheckpointPointer(run=self.run, epoch=epoch, key=key, digest=digest, iteration=iteration, steps=steps)
        self.retry(lambda: self.store.put(latest_checkpoint(self.run, epoch), pointer.to_bytes()))
        return pointer

    def delete_checkpoint(self, pointer: CheckpointPointer) -> None:
        """Remove a checkpoint that a newer one has replaced."""
        self.retry(lambda: self.store.delete(pointer.key))

    def recorded_episodes(self, epoch: int) -> list[EpisodeId]:
        """The segments of the epoch that are in the store: the episode of each."""
        return [episode for _, episode, _ in self._stored(epoch)]

    def list_segments(self, epoch: int, known: dict[str, SegmentRef]) -> list[SegmentRef]:
        """The exact list of the epoch's segments: what is in the store, whichever driver put it there."""
        stored = self._stored(epoch)
        return [known.get(segment) or self._segment(key, episode, segment) for key, episode, segment in stored]

    def _stored(self, epoch: int) -> list[tuple[str, EpisodeId, SegmentId]]:
        """Key, episode and id of every segment of the epoch in the store; what else lies there is passed over."""
        entries = self.retry(lambda: self.store.list(keys.segments_prefix(self.run, epoch)))
        places = ((entry.key, segment_at(entry.key)) for entry in entries)
        return [(key, place.episode, place.segment) for key, place in places if place is not None]

    def _segment(self, key: str, episode: EpisodeId, segment: SegmentId) -> SegmentRef:
        digest = Digest(sha256(self._get(key)))
        return SegmentRef(segment=segment, episode=episode, key=key, digest=digest)

    def commit_epoch(self, record: EpochFinishedRecord) -> None:
        """Commit the account of an epoch. Whoever was first has said it."""
        self._commit(keys.epoch_finished(self.run, record.epoch), record.to_bytes())

    def commit_stop(self, attempt: int, epoch: int, steps: int, pointer: CheckpointPointer | None) -> None:
        """Confirm that the stop request of this attempt was obeyed."""
        word = DriverStopped(
            run=self.run,
            epoch=epoch,
            attempt=attempt,
            steps=steps,
            checkpoint_key=pointer.key if pointer else None,
            checkpoint_digest=pointer.digest if pointer else None,
            time=datetime.now(UTC),
        )
        self._commit(keys.driver_stopped(self.run, attempt), word.to_bytes())

    def read_heartbeat(self) -> Heartbeat | None:
        """The newest heartbeat of any driver of this run; None also where it cannot be read."""
        try:
            return Heartbeat.from_bytes(self._get(keys.driver_heartbeat(self.run)))
        except NotFound:
            return None
        except ContractError as error:  # damaged, or of a newer version
            log.warning("heartbeat cannot be read", error=str(error))
            return None

    def write_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Write a heartbeat, once: the next one comes soon."""
        self.store.put(keys.driver_heartbeat(self.run), heartbeat.to_bytes())

    def _get(self, key: str, digest: str | None = None) -> bytes:
        return self.retry(lambda: self.store.get(key, digest))

    def _commit(self, key: str, data: bytes) -> None:
        try:
            self.retry(lambda: self.store.create(key, data))
        except AlreadyExists:
            log.info("commit object exists already", key=key)

    def retry(self, call: Callable[[], T]) -> T:
        """`call` until it succeeds or PATIENCE_S have passed."""
        deadline = time.monotonic() + PATIENCE_S
        attempt = 0
        while True:
            try:
                return call()
            except Transient as error:
                if time.monotonic() > deadline:
                    raise
                log.warning("store is away", error=str(error), attempt=attempt)
                self._sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])
                attempt += 1
