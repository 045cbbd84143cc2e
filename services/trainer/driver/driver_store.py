"""The driver's access to the store: reads orders; writes checkpoints, heartbeats and the records of finished epochs.

It retries while the store is unreachable: an epoch of hours must not be lost to a minute without storage.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import structlog

from services.trainer.documents import (
    CheckpointPointer,
    DriverName,
    Heartbeat,
    StoredObject,
    checkpoint_key,
    latest_checkpoint_key,
)
from services.trainer.domain.episodes import segment_at
from services.trainer.driver.blocking_store import BlockingStore
from shared.contracts.base import sha256
from shared.contracts.driver import DriverStopped
from shared.contracts.epoch import (
    ArchiveRef,
    EpochFinishedRecord,
    EpochStart,
    ExploredArchive,
    PassesRef,
    RewardModelRef,
    SegmentRef,
    TrajectoryRef,
)
from shared.contracts.ids import Digest, EpisodeId, RunId
from shared.contracts.progress import ArchiveCoverage
from shared.contracts.run import RunRecord
from shared.errors import ContractError, DigestMismatch, Permanent, Transient
from shared.state.epochs import first_unfinished_epoch
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.port import AlreadyExists, NotFound

log = structlog.get_logger(__name__)

T = TypeVar("T")
PATIENCE_S = 900.0  # a longer outage ends the driver; the next one resumes from the last checkpoint
PAUSES_S = (0.5, 1, 2, 5, 10)


class DriverStore:
    """All that the driver of one run reads and writes."""

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
        """The order of the first unfinished epoch, or None."""
        prefix = keys.epochs_prefix(self.run)
        names = {entry.key for entry in self.retry(lambda: self.store.list(prefix))}
        key = keys.epoch_start(self.run, first_unfinished_epoch(self.run, names))
        return EpochStart.from_bytes(self._get(key)) if key in names else None

    def read_reward_model(self, ref: RewardModelRef | None) -> bytes | None:
        """The weights file that an order names, checked against the order's digest; None without a reward model."""
        if ref is None:
            return None
        return self._get(ref.weights_key, ref.weights_digest)

    def resume_checkpoint(self, epoch: int) -> tuple[str, bytes] | None:
        """Digest and bytes of the checkpoint to start `epoch` from: its own newest, or the last epoch's final one.

        None only for the first epoch of a run. Raises Permanent if a later epoch has no checkpoint to start from.
        """
        own = self._own_checkpoint(epoch)
        if own is not None or epoch == 0:
            return own
        finished = EpochFinishedRecord.from_bytes(self._get(keys.epoch_finished(self.run, epoch - 1)))
        return finished.checkpoint_digest, self._get(finished.checkpoint_key, finished.checkpoint_digest)

    def _own_checkpoint(self, epoch: int) -> tuple[str, bytes] | None:
        """The newest checkpoint from within an epoch; None if it is missing or differs from the pointer's digest."""
        pointer = self.checkpoint_pointer(epoch)
        if pointer is None:
            return None
        try:
            return pointer.digest, self.read(pointer)
        except (NotFound, DigestMismatch) as error:  # e.g. a backup copied while the driver wrote
            log.warning("checkpoint missing: the epoch restarts", epoch=epoch, error=str(error))
            return None

    def checkpoint_pointer(self, epoch: int) -> CheckpointPointer | None:
        """The pointer to the newest checkpoint from within an epoch; None if it is missing or unreadable."""
        try:
            pointer = CheckpointPointer.from_bytes(self._get(latest_checkpoint_key(self.run, epoch)))
        except NotFound:
            return None
        except ContractError as error:
            log.warning("checkpoint pointer unreadable: the epoch restarts", epoch=epoch, error=str(error))
            return None
        if (pointer.run, pointer.epoch) != (self.run, epoch):
            raise Permanent(
                f"{latest_checkpoint_key(self.run, epoch)} belongs to run {pointer.run}: remove it and resume"
            )
        return pointer

    def save_checkpoint(self, data: bytes, epoch: int, iteration: int, steps: int) -> CheckpointPointer:
        """Store a checkpoint, then point to it: a crash between the two leaves the former pointer valid."""
        digest = Digest(sha256(data))
        key = checkpoint_key(self.run, epoch, self.driver, iteration, digest)
        self.retry(lambda: self.store.put(key, data))
        pointer = CheckpointPointer(run=self.run, epoch=epoch, key=key, digest=digest, iteration=iteration, steps=steps)
        self.retry(lambda: self.store.put(latest_checkpoint_key(self.run, epoch), pointer.to_bytes()))
        return pointer

    def delete_checkpoint(self, pointer: CheckpointPointer) -> None:
        """Remove a checkpoint that a newer one replaced."""
        self.retry(lambda: self.store.delete(pointer.key))

    def read(self, reference: StoredObject) -> bytes:
        """An object that a document refers to. Raises NotFound, or DigestMismatch if it is damaged."""
        return self._get(reference.key, reference.digest)

    def save_archive(self, data: bytes, epoch: int) -> ArchiveRef:
        """Store a pack of the state archive. Its digest is part of the key: no driver overwrites another one's pack."""
        digest = Digest(sha256(data))
        reference = ArchiveRef(key=keys.archive_pack(self.run, epoch, digest), digest=digest)
        self.retry(lambda: self.store.put(reference.key, data))
        return reference

    def save_trajectory(self, data: bytes, entry: int, steps: int) -> TrajectoryRef:
        """Store a trajectory. Its digest is part of the key, so a repeated epoch writes the same object."""
        digest = Digest(sha256(data))
        reference = TrajectoryRef(entry=entry, steps=steps, key=keys.trajectory(self.run, entry, digest), digest=digest)
        self.retry(lambda: self.store.put(reference.key, data))
        return reference

    def save_passes(self, data: bytes, epoch: int, passes: int) -> PassesRef:
        """Store an epoch's passes of legs. Their digest is part of the key, as a trajectory's is."""
        digest = Digest(sha256(data))
        reference = PassesRef(passes=passes, key=keys.leg_passes(self.run, epoch, digest), digest=digest)
        self.retry(lambda: self.store.put(reference.key, data))
        return reference

    def save_coverage(self, coverage: ArchiveCoverage) -> None:
        """Store the rooms of the state archive after an epoch."""
        self.retry(lambda: self.store.put(keys.archive_coverage(self.run, coverage.epoch), coverage.to_bytes()))

    def read_explored(self) -> ExploredArchive | None:
        """What the exploration before the first epoch found; None before its end."""
        try:
            return ExploredArchive.from_bytes(self._get(keys.exploration(self.run, ended=True)))
        except NotFound:
            return None

    def commit_explored(self, explored: ExploredArchive) -> ExploredArchive:
        """Commit what the exploration found; return what was committed first. Its database is not needed any more."""
        self._commit(keys.exploration(self.run, ended=True), explored.to_bytes())
        self.retry(lambda: self.store.delete(keys.exploration(self.run, ended=False)))
        return self.read_explored() or explored

    def read_exploration(self) -> bytes | None:
        """The database of an exploration that a former driver began; None if no driver did."""
        try:
            return self._get(keys.exploration(self.run, ended=False))
        except NotFound:
            return None

    def save_exploration(self, content: bytes) -> None:
        """Store the database of an exploration, in place of its former one."""
        self.retry(lambda: self.store.put(keys.exploration(self.run, ended=False), content))

    def recorded_episodes(self, epoch: int) -> list[EpisodeId]:
        """The episode of each segment of the epoch that is in the store."""
        return [place.episode for place in self._segments(self._listed(epoch)).values()]

    def list_segments(self, epoch: int, known: dict[str, SegmentRef]) -> list[SegmentRef]:
        """The exact list of the epoch's segments in the store, from all drivers. `known` saves reads."""
        listed = self._listed(epoch)
        digests = keys.noted_digests(listed)
        return [
            known.get(place.segment) or self._ref(key, place, digests.get(key))
            for key, place in self._segments(listed).items()
        ]

    def _listed(self, epoch: int) -> list[str]:
        return [entry.key for entry in self.retry(lambda: self.store.list(keys.segments_prefix(self.run, epoch)))]

    @staticmethod
    def _segments(listed: list[str]) -> dict[str, keys.SegmentPlace]:
        """The segments among these keys; other objects are skipped."""
        return {key: place for key in listed if (place := segment_at(key)) is not None}

    def _ref(self, key: str, place: keys.SegmentPlace, digest: Digest | None) -> SegmentRef:
        """Hash the archive only if its writer left no digest note."""
        digest = digest or Digest(sha256(self._get(key)))
        return SegmentRef(segment=place.segment, episode=place.episode, key=key, digest=digest)

    def commit_epoch(self, record: EpochFinishedRecord) -> None:
        """Commit the record of a finished epoch. The first commit wins."""
        self._commit(keys.epoch_finished(self.run, record.epoch), record.to_bytes())

    def commit_stop(self, attempt: int, epoch: int, steps: int, pointer: CheckpointPointer | None) -> None:
        """Confirm the stop request of this attempt."""
        stopped = DriverStopped(
            run=self.run,
            epoch=epoch,
            attempt=attempt,
            steps=steps,
            checkpoint_key=pointer.key if pointer else None,
            checkpoint_digest=pointer.digest if pointer else None,
            time=datetime.now(UTC),
        )
        self._commit(keys.driver_stopped(self.run, attempt), stopped.to_bytes())

    def read_heartbeat(self) -> Heartbeat | None:
        """The newest heartbeat of any driver of this run. An unreadable heartbeat counts as missing."""
        try:
            return Heartbeat.from_bytes(self._get(keys.driver_heartbeat(self.run)))
        except NotFound:
            return None
        except ContractError as error:  # damaged, or of a newer version
            log.warning("heartbeat unreadable", error=str(error))
            return None

    def write_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Write a heartbeat without retries: the next one comes soon."""
        self.store.put(keys.driver_heartbeat(self.run), heartbeat.to_bytes())

    def _get(self, key: str, digest: str | None = None) -> bytes:
        return self.retry(lambda: self.store.get(key, digest))

    def _commit(self, key: str, data: bytes) -> None:
        try:
            self.retry(lambda: self.store.create(key, data))
        except AlreadyExists:
            log.info("commit object already exists", key=key)

    def retry(self, call: Callable[[], T]) -> T:
        """Repeat `call` while it raises Transient, for at most PATIENCE_S."""
        deadline = time.monotonic() + PATIENCE_S
        attempt = 0
        while True:
            try:
                return call()
            except Transient as error:
                if time.monotonic() > deadline:
                    raise
                log.warning("store call failed", error=str(error), attempt=attempt)
                self._sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])
                attempt += 1
