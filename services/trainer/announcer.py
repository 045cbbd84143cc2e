"""Announces what drivers and env runners put into the store: every segment, then the epoch's account.

They have no bus; this task tails the store for them. Repeating an announcement is harmless (its id is the same), so
nothing about it is kept across restarts.
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
class Tail:
    """Where the announcements of one run stand."""

    run: RunId
    epoch: int
    announced: set[str] = field(default_factory=set)
    """Keys that need no more attention: of announced segments, and of objects that are none."""


class Announcer:
    """Follows the newest epoch of each run."""

    def __init__(self, store: Store, bus: Bus) -> None:
        self.store = store
        self.bus = bus
        self._tails: dict[RunId, Tail] = {}

    async def follow_all(self, fences: Mapping[RunId, int]) -> None:
        """Follow each of these runs, and forget where all others stood: they have ended.

        What is wrong with one keeps nobody from the others; Fatal goes up.
        """
        self._tails = {run: tail for run, tail in self._tails.items() if run in fences}
        for run, fence in fences.items():
            try:
                await self.follow(run, fence)
            except Fatal:
                raise
            except ZeldaError as error:
                log.warning("segments not announced", run=run, error=str(error))

    async def follow(self, run: RunId, fence: int) -> None:
        """Announce what is new in this run. Raises Transient when store or bus are away; call again later."""
        tail = self._tails.get(run) or await self._begin(run)
        while await self._announce(tail, fence):
            tail.epoch += 1
            tail.announced = set()

    async def _begin(self, run: RunId) -> Tail:
        """Start one epoch before the first unfinished one: whether its account was announced is not known."""
        names = {entry.key for entry in await self.store.list(keys.epochs_prefix(run))}
        self._tails[run] = Tail(run, max(0, first_unfinished_epoch(run, names) - 1))
        return self._tails[run]

    async def _announce(self, tail: Tail, fence: int) -> bool:
        """Announce the epoch's new segments; True once its account was announced, too."""
        finished_key = keys.epoch_finished(tail.run, tail.epoch)
        if not await self.store.exists(finished_key):
            await self._tell_new_segments(tail, fence)
            return False
        raw = await self.store.get(finished_key)
        account = EpochFinishedRecord.from_bytes(raw)
        for ref in account.segments:
            await self._tell_segment(tail, ref, account.fence)
        failpoint("trainer.before_epoch_finished")
        await self._publish(
            EpochFinished(
                run=tail.run,
                epoch=tail.epoch,
                key=finished_key,
                digest=Digest(sha256(raw)),
                segments=len(account.segments),
            ),
            account.fence,
        )
        EPOCHS.inc()
        log.info("epoch announced", run=tail.run, epoch=tail.epoch, segments=len(account.segments))
        return True

    async def _tell_new_segments(self, tail: Tail, fence: int) -> None:
        for entry in await self.store.list(keys.segments_prefix(tail.run, tail.epoch)):
            if entry.key in tail.announced:
                continue
            found = segment_at(entry.key)
            if found is None:
                log.warning("object passed over: no segment has such a name", run=tail.run, key=entry.key)
                tail.announced.add(entry.key)
                continue
            digest = Digest(sha256(await self.store.get(entry.key)))
            ref = SegmentRef(episode=found.episode, segment=found.segment, key=entry.key, digest=digest)
            await self._tell_segment(tail, ref, fence)

    async def _tell_segment(self, tail: Tail, ref: SegmentRef, fence: int) -> None:
        if ref.key in tail.announced:
            return
        await self._publish(
            SegmentReady(
                run=tail.run,
                epoch=tail.epoch,
                key=ref.key,
                digest=ref.digest,
                episode=ref.episode,
                segment=ref.segment,
            ),
            fence,
        )
        tail.announced.add(ref.key)
        ANNOUNCED.inc()

    async def _publish(self, data: EventData, fence: int) -> None:
        await self.bus.publish(wrap(data, source=SOURCE, fence=fence))
