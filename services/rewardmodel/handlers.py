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
from services.rewardmodel.adapters.model_store import RewardModelStore, StoredCard, history
from services.rewardmodel.adapters.score_cache import ScoreCache
from services.rewardmodel.card_builder import CardContext, build_card
from services.rewardmodel.domain.completeness import OutcomeCounts, count_outcomes
from services.rewardmodel.interim_trainer import InterimTrainer
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training_protocol import TrainingResult
from services.rewardmodel.training_runner import TrainingRunner
from shared.contracts.card import RewardModelCard
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.events import RmTrained, RunState
from shared.contracts.ids import Digest, RunId
from shared.contracts.run import RunRecord
from shared.errors import DigestMismatch, Permanent, Transient
from shared.game.observation.layout import VERSION
from shared.process.in_progress import InProgress
from shared.rewardnet import RewardWeights, load
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.port import NotFound, Store

SOURCE = "rewardmodel"
HALTED_STATES: Final[frozenset[RunState]] = frozenset({"stopping", "stopped", "failed"})
log = structlog.get_logger(__name__)


def _now() -> datetime:
    return datetime.now(UTC)


class Handlers:
    """Event in, events out; the ports are given by the wiring. `now` is the wall clock."""

    def __init__(
        self,
        store: Store,
        scores: ScoreCache,
        models: RewardModelStore,
        runner: TrainingRunner,
        streaming: InterimTrainer,
        group: RewardModelGroup,
        stopping: Callable[[], bool],
        now: Callable[[], datetime] = _now,
    ) -> None:
        """Nothing is read yet."""
        self._store, self._scores, self._models, self._runner = store, scores, models, runner
        self._interim_trainer, self._group, self._stopping, self._now = streaming, group, stopping, now
        self._runs = RunRecords(store)
        self._in_progress: InProgress[tuple[RunId, int]] = InProgress()

    async def score_ready(self, event: Envelope) -> Sequence[Envelope]:
        """Wake whoever waits for this epoch's scores, and count it for a retraining in between."""
        self._interim_trainer.score(event.runid, event.epoch, time.monotonic())
        return []

    async def epoch_finished(self, event: Envelope) -> Sequence[Envelope]:
        """Wait for the scores, train, commit weights and card, announce the card."""
        epoch = event.runid, event.epoch
        with self._in_progress.claim(epoch) as claimed:
            if not claimed:
                # The reconciler republishes while judges are slow. A second event that waited would hold a slot of
                # the consumer, and soon all of them: other runs would get no model.
                return []
            committed = await self._models.committed(*epoch) or await self._made(event)
        return [self._announcement(committed, event)] if committed is not None else []

    async def _made(self, event: Envelope) -> StoredCard | None:
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
        card, result = await self._trained(finished, outcomes)
        committed = await self._committed(event, card, result)
        self._interim_trainer.done(event.runid, event.epoch)
        return committed

    async def _committed(self, event: Envelope, card: RewardModelCard, result: TrainingResult) -> StoredCard | None:
        """The committed model; None if its epoch's account is gone: the next run of that name would inherit it."""
        try:
            await self._store.get(event.data.key, event.data.digest)
        except (NotFound, DigestMismatch) as error:
            log.warning("run deleted meanwhile, no reward model", run=event.runid, epoch=event.epoch, error=str(error))
            return None
        return await self._models.commit(card, result.weights, result.state_dict)

    async def _awaited(self, finished: EpochFinishedRecord, judge_deadline_s: float) -> OutcomeCounts | None:
        """The epoch's outcomes once all are in, or as they are at the deadline; None if the run stands still then."""
        until = finished.deadline(judge_deadline_s)
        while True:
            wake = self._interim_trainer.arrival(finished.run, finished.epoch)
            scores = await self._scores.of_epoch(finished.run, finished.epoch)
            found = {scored.segment: scored.status for scored in scores}
            outcomes = count_outcomes([segment.segment for segment in finished.segments], found)
            left = (until - self._now()).total_seconds()
            if left <= 0 and not outcomes.complete:
                record = await self._record(finished.run)
                if record is not None and record.state in HALTED_STATES:
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

    async def _trained(
        self, finished: EpochFinishedRecord, outcomes: OutcomeCounts
    ) -> tuple[RewardModelCard, TrainingResult]:
        run, epoch = finished.run, finished.epoch
        newest = await self._models.latest_before(run, epoch)
        previous = self._interim_trainer.interim(run, epoch) or await self._previous(newest)
        data = await self._runner.load_data(run, epoch)
        result = await self._runner.train_final(data, epoch, outcomes.quorum(self._group.quorum), previous)
        about = CardContext(run, epoch, outcomes, history(newest), self._group, self._now())
        card = build_card(about, data.ratings, result, load(result.weights, VERSION))
        _measure(card, result)
        return card, result

    async def _previous(self, newest: StoredCard | None) -> RewardWeights | None:
        if newest is None:
            return None
        try:
            return await self._models.weights(newest, VERSION)
        except Permanent as error:  # another layout, damaged, or gone: a full fit needs no predecessor
            log.warning("earlier model not continued", epoch=newest.card.epoch, error=str(error))
            return None

    def _announcement(self, committed: StoredCard, cause: Envelope) -> Envelope:
        card = committed.card
        data = RmTrained(run=card.run, epoch=card.epoch, key=committed.key, digest=Digest(committed.digest))
        return wrap(data, source=SOURCE, fence=cause.fence, traceparent=cause.traceparent)


def _measure(card: RewardModelCard, result: TrainingResult) -> None:
    telemetry.TRAINING_SECONDS.labels("final").observe(result.seconds)
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
