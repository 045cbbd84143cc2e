"""Runs one epoch: train, checkpoint at intervals, evaluate, list the recorded segments, commit the record."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from services.trainer.documents import CheckpointPointer
from services.trainer.domain.epoch_metrics import epoch_metrics
from services.trainer.driver.driver_store import DriverStore
from services.trainer.driver.evaluation import Evaluation, EvaluationAborted, step_limit
from services.trainer.driver.first_exploration import FirstExploration
from services.trainer.driver.heartbeat import HeartbeatThread
from services.trainer.driver.saved_starts import saved_starts
from services.trainer.driver.session import TrainingSession
from services.trainer.imitation.demonstrations import read_demonstrations
from services.trainer.restarts.backward import imitation_weight
from services.trainer.restarts.epoch_restarts import EpochRestarts
from services.trainer.restarts.explored_path import ExploredPaths
from services.trainer.restarts.trajectories import ArchiveTrajectories
from services.trainer.restarts.trajectory_player import TrajectoryPlayer
from services.trainer.rl.epoch_plan import EpochPlan
from shared.contracts.driver import EVALUATION_S
from shared.contracts.epoch import ArchiveDemonstrations, ArchiveRef, EpochFinishedRecord, EpochStart, SegmentRef
from shared.contracts.ids import EpisodeId
from shared.process.failpoints import failpoint

log = structlog.get_logger(__name__)

CHECKPOINT_S = 60.0  # seconds between two checkpoints: a crash repeats at most this much training


class EpochRunner:
    """Runs epochs of one session. It returns early, without a record, when the heartbeat has a reason to exit."""

    def __init__(
        self,
        driver_store: DriverStore,
        heartbeat: HeartbeatThread,
        session: TrainingSession,
        evaluation: Evaluation,
        clock: Callable[[], float] = time.monotonic,
        evaluation_limit: Callable[[int, int], int] = step_limit,
        explored_paths: ExploredPaths | None = None,
    ) -> None:
        """`evaluation_limit` gives the longest evaluation episode from the lengths of an episode and an epoch.

        `explored_paths` keeps the paths of first explorations for other runs.
        """
        self.driver_store, self.heartbeat, self.session, self.evaluation = driver_store, heartbeat, session, evaluation
        self.last_checkpoint: str | None = None
        self._trajectories = ArchiveTrajectories(driver_store, lambda: TrajectoryPlayer(session.config.environment()))
        self._restarts = EpochRestarts(driver_store, self._trajectories)
        self._exploration = FirstExploration(
            driver_store, heartbeat, self._restarts, session.config, paths=explored_paths
        )
        self._clock, self._evaluation_limit = clock, evaluation_limit

    def close(self) -> None:
        """Close evaluation, session and the emulator that plays trajectories."""
        self._trajectories.close()
        self.evaluation.close()
        self.session.close()

    def run(self, order: EpochStart) -> None:
        """Execute the order. The record is committed unless the epoch was cut short."""
        completed = self._exploration.complete(order)
        if completed is None:
            return
        order = completed
        self._begin(order)
        pointer = self._train(order)
        complete = self.session.steps >= order.config.epoch_steps
        if self.heartbeat.exit_reason == "deleted" or (not complete and self.heartbeat.exit_reason == "orphaned"):
            # Orphaned counts as killed with the service: a checkpoint would change what the next driver plays.
            return
        self.session.collect(final=True)  # first, so that the checkpoint holds every episode
        pointer = self._save(order, pointer)
        if complete:
            self._finish(order, pointer)

    def _begin(self, order: EpochStart) -> None:
        session = self.session
        if session.epoch != order.epoch - 1 or self.last_checkpoint is None:
            found = self.driver_store.resume_checkpoint(order.epoch)
            if found is not None:
                self.last_checkpoint = found[0]
                session.load(found[1])
                log.info("checkpoint loaded", epoch=order.epoch, digest=found[0])
        weights = self.driver_store.read_reward_model(order.reward_model)
        recorded = self.driver_store.recorded_episodes(order.epoch)
        demonstrations = read_demonstrations(order, self.driver_store.read, self._trajectories)
        session.imitate(demonstrations, imitation_weight(order.demonstrations))
        session.begin(lambda numbers: self._plan(order, weights, recorded, numbers), order.epoch)
        self.heartbeat.update(state="training", epoch=order.epoch, steps=session.steps, evaluated=0.0, assistance=None)

    def _plan(
        self, order: EpochStart, weights: bytes | None, recorded: list[EpisodeId], numbers: dict[str, int]
    ) -> EpochPlan:
        plan = EpochPlan(
            epoch=order.epoch,
            restarts=self._restarts.plan(order, weights),
            starts=saved_starts(order, self.session.config, self.driver_store.read),
            reward_model=weights,
            reward_model_digest=order.reward_model.weights_digest if order.reward_model else None,
            checkpoint=self.last_checkpoint,
            first_episodes=numbers,
            steps=self.session.steps,
        )
        return plan.counting(recorded)

    def _train(self, order: EpochStart) -> CheckpointPointer | None:
        """Train to the epoch's end or a reason to exit; return the epoch's newest checkpoint, this driver's or not."""
        session = self.session
        pointer = self.driver_store.checkpoint_pointer(order.epoch)
        saved_at = self._clock()
        while session.steps < order.config.epoch_steps and not self._exits:
            session.iterate()
            failpoint("driver.after_iteration")
            self._report(order)
            if self._clock() - saved_at >= CHECKPOINT_S and not self._exits:
                pointer, saved_at = self._save(order, pointer), self._clock()
        return pointer

    def _report(self, order: EpochStart) -> None:
        session = self.session
        self.heartbeat.update(
            steps=session.steps,
            steps_per_s=session.steps_per_s,
            assistance=session.assistance(final=False),
        )
        log.info(
            "iteration finished",
            epoch=order.epoch,
            steps=session.steps,
            steps_per_s=round(session.steps_per_s),
            episodes=len(session.summaries),
            **{name: round(value, 4) for name, value in session.figures.items()},
        )

    def _report_evaluation(self, share: float) -> None:
        self.heartbeat.update(evaluated=share)

    def _save(self, order: EpochStart, former: CheckpointPointer | None) -> CheckpointPointer:
        session = self.session
        pointer = self.driver_store.save_checkpoint(session.save(), order.epoch, session.iteration, session.steps)
        self.last_checkpoint = pointer.digest
        if former is not None and former.key != pointer.key:
            self.driver_store.delete_checkpoint(former)
        failpoint("driver.after_checkpoint")
        return pointer

    def _finish(self, order: EpochStart, pointer: CheckpointPointer) -> None:
        session = self.session
        began = self._clock()
        try:
            evaluation = self._evaluate(order)
        except EvaluationAborted:  # the checkpoint holds the complete epoch: the next driver evaluates it
            log.info("evaluation aborted", epoch=order.epoch, reason=self.heartbeat.exit_reason)
            return
        took = self._clock() - began
        segments = self.driver_store.list_segments(order.epoch, session.segments)
        archive = self._restarts.finish(order, session.states, session.visits)
        demonstrations = self._restarts.demonstrate(order, session.summaries, session.passes)
        failpoint("driver.before_finished")
        if self.heartbeat.exit_reason == "deleted":
            return
        learnt = (archive, demonstrations)
        self.driver_store.commit_epoch(self._record(order, pointer, segments, learnt, evaluation, took))
        log.info("epoch finished", epoch=order.epoch, steps=session.steps, segments=len(segments))

    def _evaluate(self, order: EpochStart) -> dict[str, float] | None:
        config = order.config
        if not config.eval_interval or (order.epoch + 1) % config.eval_interval:
            return None
        self.heartbeat.update(state="evaluating", evaluated=0.0)
        limit = self._evaluation_limit(config.episode_length, config.epoch_steps)
        policy = self.session.network.pi
        return self.evaluation.run(policy, order.epoch, limit, self._report_evaluation, lambda: self._exits)

    @property
    def _exits(self) -> bool:
        return self.heartbeat.exit_reason is not None

    def _record(
        self,
        order: EpochStart,
        pointer: CheckpointPointer,
        segments: list[SegmentRef],
        learnt: tuple[ArchiveRef | None, ArchiveDemonstrations | None],
        evaluation: dict[str, float] | None,
        evaluation_s: float,
    ) -> EpochFinishedRecord:
        session = self.session
        archive, demonstrations = learnt
        metrics = epoch_metrics(session.summaries) | {f"learner/{n}": v for n, v in session.figures.items()}
        metrics[EVALUATION_S] = evaluation_s if evaluation is not None else 0.0
        metrics["steps_per_s"] = session.steps / max(session.seconds, 1e-9)
        metrics["lifetime_steps"] = float(session.lifetime_steps)
        metrics |= self._restarts.figures() if archive is not None else {}
        return EpochFinishedRecord(
            run=order.run,
            epoch=order.epoch,
            fence=order.fence,
            attempt=session.attempts,
            steps=session.steps,
            episodes=len(session.summaries),
            seconds=session.seconds,
            segments=segments,
            segments_dropped=session.dropped,
            checkpoint_key=pointer.key,
            checkpoint_digest=pointer.digest,
            reward_model=order.reward_model.weights_digest if order.reward_model else None,
            archive=archive,
            demonstrations=demonstrations,
            metrics=metrics,
            evaluation=evaluation,
            assistance=session.assistance(final=True),
            created=datetime.now(UTC),
        )
