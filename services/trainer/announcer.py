"""Announces what drivers and env runners put into the store: every segment, then the record of the finished epoch.

Drivers and env runners have no bus; this task polls the store for them. A repeated announcement has the same id and is
harmless, so a restarted announcer needs no state. The digest of a segment is in the note that its writer left beside
the archive (`keys.digest_note`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from services.trainer.domain.episodes import segment_at
from shared.bus.port import Bus
from shared.contracts.base import sha256
from shared.contracts.envelope import wrap
from shared.contracts.epoch import EpochFinishedRecord, SegmentRef
from shared.contracts.events import EpochFinished, EventData, SegmentReady
from shared.contracts.ids import Digest, RunId
from shared.errors import Fatal, ZeldaError
from shared.process.failpoints import failpoint
from shared.state.epochs import first_unfinished_epoch
from shared.store import keys
from shared.store.port import Store
from shared.telemetry import metrics

log = structlog.get_logger(__name__)

SOURCE = "zelda/trainer"
ANNOUNCED = metrics.counter("trainer_segments_announced_total", "segments announced on the bus")
EPOCHS = metrics.counter("trainer_epochs_finished_total", "epochs whose account was announced")


@dataclass
class RunCursor:
    """How far one run is announced."""

    run: RunId
    epoch: int
    done: set[str] = field(default_factory=set)
    """Keys of announced segments, and of objects that are not segments."""
    without_digest: set[str] = field(default_factory=set)
    """Archives that the last poll found without a digest note."""


class Announcer:
    """Follows the newest epoch of each run."""

    def __init__(self, store: Store, bus: Bus) -> None:
        self.store = store
        self.bus = bus
        self._cursors: dict[RunId, RunCursor] = {}

    async def follow_all(self, fences: Mapping[RunId, int]) -> None:
        """Follow each of these runs, and forget the cursors of all others: they have ended.

        A failure in one run does not affect the others; Fatal propagates.
        """
        self._cursors = {run: cursor for run, cursor in self._cursors.items() if run in fences}
        for run, fence in fences.items():
            try:
                await self.follow(run, fence)
            except Fatal:
                raise
            except ZeldaError as error:
                log.warning("segments not announced", run=run, error=str(error))

    async def follow(self, run: RunId, fence: int) -> None:
        """Announce what is new in this run. Raises Transient when store or bus are away; call again later."""
        cursor = self._cursors.get(run) or await self._open_cursor(run)
        while await self._announce_epoch(cursor, fence):
            cursor.epoch += 1
            cursor.done, cursor.without_digest = set(), set()

    async def _open_cursor(self, run: RunId) -> RunCursor:
        """Start one epoch before the first unfinished one: its record may not be announced yet."""
        names = {entry.key for entry in await self.store.list(keys.epochs_prefix(run))}
        self._cursors[run] = RunCursor(run, max(0, first_unfinished_epoch(run, names) - 1))
        return self._cursors[run]

    async def _announce_epoch(self, cursor: RunCursor, fence: int) -> bool:
        """Announce the epoch's new segments; return True once the finished epoch is announced, too."""
        key = keys.epoch_finished(cursor.run, cursor.epoch)
        if not await self.store.exists(key):
            await self._announce_new_segments(cursor, fence)
            return False
        raw = await self.store.get(key)
        record = EpochFinishedRecord.from_bytes(raw)
        for ref in record.segments:
            await self._announce_segment(cursor, ref, record.fence)
        failpoint("trainer.before_epoch_finished")
        digest, segments = Digest(sha256(raw)), len(record.segments)
        finished = EpochFinished(run=cursor.run, epoch=cursor.epoch, key=key, digest=digest, segments=segments)
        await self._publish(finished, record.fence)
        EPOCHS.inc()
        log.info("epoch announced", run=cursor.run, epoch=cursor.epoch, segments=segments)
        return True

    async def _announce_new_segments(self, cursor: RunCursor, fence: int) -> None:
        listed = [entry.key for entry in await self.store.list(keys.segments_prefix(cursor.run, cursor.epoch))]
        digests = keys.noted_digests(listed)
        for key in listed:
            if key in cursor.done or keys.is_digest_note(key):
                continue
            place = segment_at(key)
            if place is None:
                log.warning("object skipped: not a segment key", run=cursor.run, key=key)
                cursor.done.add(key)
                continue
            digest = digests.get(key) or await self._overdue_digest(cursor, key)
            if digest is not None:
                ref = SegmentRef(episode=place.episode, segment=place.segment, key=key, digest=digest)
                await self._announce_segment(cursor, ref, fence)

    async def _overdue_digest(self, cursor: RunCursor, key: str) -> Digest | None:
        """Wait one poll for the digest note of an archive, then hash the archive: an old writer left no note."""
        if key in cursor.without_digest:
            return Digest(sha256(await self.store.get(key)))
        cursor.without_digest.add(key)
        return None

    async def _announce_segment(self, cursor: RunCursor, ref: SegmentRef, fence: int) -> None:
        if ref.key in cursor.done:
            return
        data = SegmentReady(
            run=cursor.run,
            epoch=cursor.epoch,
            key=ref.key,
            digest=ref.digest,
            episode=ref.episode,
            segment=ref.segment,
        )
        await self._publish(data, fence)
        cursor.done.add(ref.key)
        ANNOUNCED.inc()

    async def _publish(self, data: EventData, fence: int) -> None:
        await self.bus.publish(wrap(data, source=SOURCE, fence=fence))
