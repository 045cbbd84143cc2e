"""What the service does with its two events: a score wakes whoever waits; a finished epoch becomes a reward model.

The handler of `epoch.finished` holds its event until the card is committed. So a crash at any point gives the event to
another process, which finds either the card, and announces it again, or trains anew.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import structlog

from services.rewardmodel import telemetry
from services.rewardmodel.adapters.scores import Scores
from services.rewardmodel.adapters.shelf import Filed, Shelf, history
from services.rewardmodel.cards import Circumstances, card_of
from services.rewardmodel.domain.completeness import Outcomes, tally
from services.rewardmodel.orders import Product
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.streaming import Streaming
from services.rewardmodel.workbench import Workbench
from shared.contracts.card import RewardModelCard
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.events import RmTrained, RunState
from shared.contracts.ids import Digest, RunId
from shared.contracts.run import RunRecord
from shared.errors import DigestMismatch, Permanent, Transient
from shared.game.layout import VERSION
from shared.process.in_progress import InProgress
from shared.rewardnet import RewardWeights, load
from shared.state.runs import Runs
from shared.store import keys
from shared.store.port import NotFound, Store

SOURCE = "rewardmodel"
STANDING: Final[frozenset[RunState]] = frozenset({"stopping", "stopped", "failed"})
log = structlog.get_logger(__name__)


def _now() -> datetime:
    return datetime.now(UTC)


class Handlers:
    """Event in, events out; the ports are given by the wiring. `now` is the wall clock."""

    def __init__(
        self,
        store: Store,
        scores: Scores,
        shelf: Shelf,
        workbench: Workbench,
        streaming: Streaming,
        group: RewardModelGroup,
        stopping: Callable[[], bool],
        now: Callable[[], datetime] = _now,
    ) -> None:
        """Nothing is read yet."""
        self._store, self._scores, self._shelf, self._workbench = store, scores, shelf, workbench
        self._streaming, self._group, self._stopping, self._now = streaming, group, stopping, now
        self._runs = Runs(store)
        self._in_progress: InProgress[tuple[RunId, int]] = InProgress()

    async def score_ready(self, event: Envelope) -> Sequence[Envelope]:
        """Wake whoever waits for this epoch's scores, and count it for a retraining in between."""
        self._streaming.score(event.runid, event.epoch, time.monotonic())
        return []

    async def epoch_finished(self, event: Envelope) -> Sequence[Envelope]:
        """Wait for the scores, train, commit weights and card, announce the card."""
        epoch = event.runid, event.epoch
        with self._in_progress.claim(epoch) as claimed:
            if not claimed:
                # The reconciler republishes while judges are slow. A second event that waited would hold a slot of
                # the consumer, and soon all of them: other runs would get no model.
                return []
            filed = await self._shelf.filed(*epoch) or await self._made(event)
        return [self._announcement(filed, event)] if filed is not None else []

    async def _made(self, event: Envelope) -> Filed | None:
        """The reward model of an epoch that has none.

        None if its run stands still, and its judges may get on later, or if it was deleted meanwhile.
        """
        finished = EpochFinishedRecord.from_bytes(await self._store.get(event.data.key, event.data.digest))
        start = EpochStart.from_bytes(await self._store.get(keys.epoch_start(event.runid, event.epoch)))
        with telemetry.WAITING.track_inprogress():
            outcomes = await self._awaited(finished, start.config.judge_deadline_s)
        if outcomes is None:
            log.info("left until the run is resumed", run=event.runid, epoch=event.epoch)
            return None
        card, product = await self._trained(finished, outcomes)
        filed = await self._committed(event, card, product)
        self._streaming.done(event.runid, event.epoch)
        return filed

    async def _committed(self, event: Envelope, card: RewardModelCard, product: Product) -> Filed | None:
        """The committed model; None if its epoch's account is gone: the next run of that name would inherit it."""
        try:
            await self._store.get(event.data.key, event.data.digest)
        except (NotFound, DigestMismatch) as error:
            log.warning("run deleted meanwhile, no reward model", run=event.runid, epoch=event.epoch, error=str(error))
            return None
        return await self._shelf.commit(card, product.weights, product.state_dict)

    async def _awaited(self, finished: EpochFinishedRecord, judge_deadline_s: float) -> Outcomes | None:
        """The epoch's outcomes once all are in, or as they are at the deadline; None if the run stands still then."""
        until = finished.deadline(judge_deadline_s)
        while True:
            wake = self._streaming.arrival(finished.run, finished.epoch)
            scores = await self._scores.of_epoch(finished.run, finished.epoch)
            found = {scored.segment: scored.status for scored in scores}
            outcomes = tally([segment.segment for segment in finished.segments], found)
            left = (until - self._now()).total_seconds()
            if left <= 0 and not outcomes.complete:
                record = await self._record(finished.run)
                if record is not None and record.state in STANDING:
                    return None  # a card is for ever; the coordinator rings when the run goes on
                until = finished.deadline(judge_deadline_s, record.updated if record else None)
                left = (until - self._now()).total_seconds()
            if outcomes.complete or left <= 0:
                log.info("scores settled", **outcomes.counts(), complete=outcomes.complete)
                return outcomes
            if self._stopping():
                raise Transient("the service is stopping while scores are awaited")
            with suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), min(left, self._group.poll_s))

    async def _record(self, run: RunId) -> RunRecord | None:
        """The run's record, or None: what it would say is a courtesy, no reason to train nothing."""
        try:
            return await self._runs.latest(run)
        except Permanent as error:
            log.warning("run record not read", run=run, error=str(error))
            return None

    async def _trained(self, finished: EpochFinishedRecord, outcomes: Outcomes) -> tuple[RewardModelCard, Product]:
        run, epoch = finished.run, finished.epoch
        newest = await self._shelf.newest_before(run, epoch)
        previous = self._streaming.interim(run, epoch) or await self._previous(newest)
        material = await self._workbench.material(run, epoch)
        product = await self._workbench.make(material, epoch, outcomes.quorum(self._group.quorum), previous)
        about = Circumstances(run, epoch, outcomes, history(newest), self._group, self._now())
        card = card_of(about, material.ratings, product, load(product.weights, VERSION))
        _measure(card, product)
        return card, product

    async def _previous(self, newest: Filed | None) -> RewardWeights | None:
        if newest is None:
            return None
        try:
            return await self._shelf.weights(newest, VERSION)
        except Permanent as error:  # another layout, damaged, or gone: a full fit needs no predecessor
            log.warning("earlier model not continued", epoch=newest.card.epoch, error=str(error))
            return None

    def _announcement(self, filed: Filed, cause: Envelope) -> Envelope:
        card = filed.card
        data = RmTrained(run=card.run, epoch=card.epoch, key=filed.key, digest=Digest(filed.digest))
        return wrap(data, source=SOURCE, fence=cause.fence, traceparent=cause.traceparent)


def _measure(card: RewardModelCard, product: Product) -> None:
    telemetry.TRAINING_SECONDS.labels("final").observe(product.seconds)
    telemetry.TRAINED.labels(str(card.gates_passed).lower()).inc()
    telemetry.SEGMENTS.set(card.segments)
    for gate, passed in card.gates.items():
        telemetry.GATES.labels(gate).set(passed)
    if card.accuracy.confident is not None:
        telemetry.ACCURACY.labels("final").set(card.accuracy.confident)
    failed = [gate for gate, passed in card.gates.items() if not passed]
    log.info(
        "reward model trained",
        segments=card.segments,
        accuracy=card.accuracy.confident,
        fit=card.fit,
        failed_gates=failed,
        seconds=card.seconds,
    )
