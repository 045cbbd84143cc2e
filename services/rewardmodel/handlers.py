"""Handles the service's two events: `scores.ready` wakes waiting epochs, `epoch.finished` produces a reward model.

The handler of `epoch.finished` holds its event until the card is committed. After a crash the bus gives the event to
another process, which either finds the card and announces it, or trains again.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import structlog

from services.rewardmodel import telemetry
from services.rewardmodel.adapters.model_store import RewardModelStore, StoredCard, passed_models
from services.rewardmodel.adapters.pair_labels import PairLabelReader
from services.rewardmodel.adapters.score_cache import ScoreCache
from services.rewardmodel.card_builder import CardContext, build_card
from services.rewardmodel.domain.completeness import OutcomeCounts, count_outcomes
from services.rewardmodel.score_arrivals import ScoreArrivals
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training_protocol import TrainingResult
from services.rewardmodel.training_runner import TrainingRunner
from shared.contracts.card import RewardModelCard
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.events import RmTrained
from shared.contracts.ids import Digest, RunId
from shared.contracts.run import RunConfig
from shared.errors import DigestMismatch, Permanent, Transient
from shared.process.event_wait import wait_for_event
from shared.process.in_progress import InProgress
from shared.rewardnet import RewardWeights, load
from shared.state.documents import read_document
from shared.state.label_deadline import deadline_of_run
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.port import NotFound, Store

SOURCE = "rewardmodel"
log = structlog.get_logger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Handlers:
    """Maps each event to the events that follow it. `stopping` reports a shutdown, `now` is the wall clock."""

    def __init__(
        self,
        store: Store,
        scores: ScoreCache,
        pairs: PairLabelReader,
        models: RewardModelStore,
        runner: TrainingRunner,
        arrivals: ScoreArrivals,
        group: RewardModelGroup,
        stopping: Callable[[], bool],
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._store, self._scores, self._pairs, self._models, self._runner = store, scores, pairs, models, runner
        self._arrivals, self._group, self._stopping, self._now = arrivals, group, stopping, now
        self._runs = RunRecords(store)
        self._in_progress: InProgress[tuple[RunId, int]] = InProgress()

    async def score_ready(self, event: Envelope) -> Sequence[Envelope]:
        """Wake the handler that waits for this epoch's scores."""
        self._arrivals.announce(event.runid, event.epoch)
        return []

    async def epoch_finished(self, event: Envelope) -> Sequence[Envelope]:
        """Wait for the scores, train, commit weights and card, and announce the card."""
        epoch = event.runid, event.epoch
        with self._in_progress.claim(epoch) as claimed:
            if not claimed:
                # The reconciler republishes while judges are slow. A second waiting event would occupy another slot of
                # the consumer, until other runs would get no model.
                return []
            stored = await self._models.find(*epoch) or await self._produce_model(event)
        return [_trained_event(stored, event)] if stored is not None else []

    async def train_now(self, run: RunId, epoch: int) -> StoredCard:
        """Return the model of a finished epoch; without one, train and commit it from the scores that exist."""
        stored = await self._models.find(run, epoch)
        if stored is not None:
            return stored
        finished = await read_document(self._store, EpochFinishedRecord, keys.epoch_finished(run, epoch))
        start = await read_document(self._store, EpochStart, keys.epoch_start(run, epoch))
        card, result = await self._train(run, epoch, await self._count_outcomes(finished), start.config)
        return await self._models.commit(card, result.weights, result.state_dict)

    async def train_on_scores(self, run: RunId, config: RunConfig) -> StoredCard:
        """Return the model of the scores stored as epoch 0 of a run that was not played, such as a labelled bank."""
        stored = await self._models.find(run, 0)
        if stored is not None:
            return stored
        statuses = {outcome.segment: outcome.status for outcome in await self._scores.epoch(run, 0)}
        card, result = await self._train(run, 0, count_outcomes(list(statuses), statuses), config)
        return await self._models.commit(card, result.weights, result.state_dict)

    async def _produce_model(self, event: Envelope) -> StoredCard | None:
        """Train and commit the epoch's model. None if the epoch is not judged, or its run is halted or was deleted."""
        finished = EpochFinishedRecord.from_bytes(await self._store.get(event.data.key, event.data.digest))
        start = await read_document(self._store, EpochStart, keys.epoch_start(event.runid, event.epoch))
        if not start.config.judges_epoch(event.epoch):
            log.info(
                "epoch without judges", run=event.runid, epoch=event.epoch, judge_interval=start.config.judge_interval
            )
            return None
        with telemetry.WAITING.track_inprogress():
            outcomes = await self._wait_for_labels(finished, start.config)
        if outcomes is None:
            log.info("epoch deferred: run halted", run=event.runid, epoch=event.epoch)
            return None
        card, result = await self._train(event.runid, event.epoch, outcomes, start.config)
        stored = await self._commit(event, card, result)
        if stored is not None and stored.card == card:  # another process may have been first
            _record_metrics(card, result)
        self._arrivals.close_epoch(event.runid, event.epoch)
        return stored

    async def _commit(self, event: Envelope, card: RewardModelCard, result: TrainingResult) -> StoredCard | None:
        """Commit the model. None if the epoch's record is gone: nothing of a deleted run may come back."""
        try:
            await self._store.get(event.data.key, event.data.digest)
        except (NotFound, DigestMismatch) as error:
            log.warning("reward model discarded: run deleted", run=event.runid, epoch=event.epoch, error=str(error))
            return None
        return await self._models.commit(card, result.weights, result.state_dict)

    async def _wait_for_labels(self, finished: EpochFinishedRecord, config: RunConfig) -> OutcomeCounts | None:
        """Wait until every segment, and every pair that is a label, has an outcome, at most until the deadline.

        None if the run is halted by then.
        """
        deadline = finished.deadline(config.judge_deadline_s)
        while True:
            arrival = self._arrivals.next_arrival(finished.run, finished.epoch)
            outcomes = await self._count_outcomes(finished)
            complete = outcomes.complete and await self._has_pairs(finished, config)
            remaining_s = (deadline - self._now()).total_seconds()
            if remaining_s <= 0 and not complete:
                later = await deadline_of_run(self._runs, finished, config.judge_deadline_s)
                if later is None:
                    return None
                deadline = later
                remaining_s = (deadline - self._now()).total_seconds()
            if complete or remaining_s <= 0:
                log.info("scores collected", **outcomes.counts(), complete=complete)
                return outcomes
            if self._stopping():
                raise Transient("the service is stopping while it waits for scores")
            await wait_for_event(arrival, min(remaining_s, self._group.poll_s))

    async def _has_pairs(self, finished: EpochFinishedRecord, config: RunConfig) -> bool:
        """Whether no pair is missing that the model learns from. No event announces pairs: each turn looks."""
        return not config.labels.compares or await self._pairs.complete(finished.run, finished.epoch)

    async def _count_outcomes(self, finished: EpochFinishedRecord) -> OutcomeCounts:
        outcomes = await self._scores.epoch(finished.run, finished.epoch)
        statuses = {outcome.segment: outcome.status for outcome in outcomes}
        return count_outcomes([segment.segment for segment in finished.segments], statuses)

    async def _train(
        self, run: RunId, epoch: int, outcomes: OutcomeCounts, config: RunConfig
    ) -> tuple[RewardModelCard, TrainingResult]:
        latest = await self._models.latest_before(run, epoch)
        previous = await self._previous_weights(latest)
        data = await self._runner.load_data(run, epoch, config.seed, config.labels.source)
        result = await self._runner.train(data, epoch, outcomes.quorum(self._group.quorum), previous)
        context = CardContext(run, epoch, outcomes, passed_models(latest), self._group, self._now())
        card = build_card(context, data, result, load(result.weights, self._group.view))
        return card, result

    async def _previous_weights(self, latest: StoredCard | None) -> RewardWeights | None:
        if latest is None:
            return None
        if latest.card.seed is None:  # its folds were others: it may have trained on what is held out now
            log.info("warm start skipped", epoch=latest.card.epoch, error="the card predates 2026-11-24")
            return None
        try:
            return await self._models.load_weights(latest, self._group.view)
        except Permanent as error:  # another layout, damaged, or deleted: a fit from scratch needs no predecessor
            log.warning("warm start skipped", epoch=latest.card.epoch, error=str(error))
            return None


def _trained_event(stored: StoredCard, cause: Envelope) -> Envelope:
    card = stored.card
    data = RmTrained(run=card.run, epoch=card.epoch, key=stored.key, digest=Digest(stored.digest))
    return wrap(data, source=SOURCE, fence=cause.fence)


def _record_metrics(card: RewardModelCard, result: TrainingResult) -> None:
    telemetry.TRAINING_SECONDS.observe(result.seconds)
    telemetry.TRAINED.labels(str(card.gates_passed).lower()).inc()
    telemetry.OF_RUNS.show(card.run)
    telemetry.SEGMENTS.labels(card.run).set(card.segments)
    for gate, passed in card.gates.items():
        telemetry.GATES.labels(card.run, gate).set(passed)
    if card.accuracy.confident is not None:
        telemetry.ACCURACY.labels(card.run).set(card.accuracy.confident)
    failed = [gate for gate, passed in card.gates.items() if not passed]
    log.info(
        "reward model trained",
        segments=card.segments,
        compared=card.compared.train,
        accuracy=card.accuracy.confident,
        fit=card.fit,
        failed_gates=failed,
        seconds=card.seconds,
    )
