"""The backward curriculum of a run: from the stage that an order pins to the epoch's starts, and to the next stage."""

from collections.abc import Iterable

from services.trainer.domain.backward import (
    ARRIVED_IMITATION,
    ARRIVED_SHARE,
    earliest_mastered,
    point_slots,
    spread_points,
    start_points,
)
from services.trainer.domain.epoch_metrics import GOAL, EpisodeSummary
from services.trainer.restarts.collector import Known, PathStart
from services.trainer.restarts.plan import RestartPlan
from services.trainer.restarts.run_archive import RunArchive
from services.trainer.restarts.trajectories import ArchiveTrajectories
from services.trainer.restarts.trajectory_player import start_name
from services.trainer.state_archive.goal import ArchiveGoal, next_goal
from services.trainer.state_archive.selection import Score
from shared.contracts.epoch import BackwardStage
from shared.contracts.learning.restarts import RestartsConfig


class BackwardCurriculum:
    """Plans the epochs of one run's backward curriculum. It keeps nothing but the figures of the last epoch."""

    def __init__(self, trajectories: ArchiveTrajectories) -> None:
        self._trajectories = trajectories
        self.figures: dict[str, float] = {}
        """Where the curriculum stands after the last epoch, as metrics."""

    def plan(self, stage: BackwardStage, config: RestartsConfig, known: Known, epoch: int) -> RestartPlan:
        """The starts of an epoch at this stage, with the share and distances of the run's configuration.

        At the true start they lie evenly on the trajectory, so that the policy forgets no part of it. Raises
        NotFound, DigestMismatch, ContractError or ReplayMismatch, with its name, if the trajectory is damaged.
        """
        points = start_points(stage.begin, config) if stage.begin else spread_points(stage.trajectory.steps, epoch)
        trajectory, found = self._trajectories.starts(stage.trajectory, [point for point in points if point])
        possible = [point for point in points if not point or point in found]
        slots = point_slots(possible, config.share if stage.begin else min(config.share, ARRIVED_SHARE))
        paths = {
            start_name(point): PathStart(trajectory.entry, start.step, follows=start.step)
            for point, start in found.items()
        }
        starts = tuple(found[point].state if point else None for point in slots)
        return RestartPlan(starts, paths, known, ArchiveGoal(trajectory.cell), config.cell)

    def next_stage(
        self,
        stage: BackwardStage | None,
        config: RestartsConfig,
        summaries: Iterable[EpisodeSummary],
        archive: RunArchive,
        score: Score | None,
    ) -> BackwardStage | None:
        """The stage after an epoch at `stage`; None while the archive has no goal.

        A curriculum that arrived at the true start goes on with the next goal, if the archive has one worth more.
        """
        self.figures = {}
        if stage is not None and stage.begin:
            stage = self._moved(stage, config, summaries)
        if stage is not None and stage.begin:
            return stage
        entry = next_goal(archive.archive, score, None if stage is None else stage.trajectory.entry)
        if entry is None:
            return stage
        (reference,) = self._trajectories.save(archive, [entry])
        return BackwardStage(trajectory=reference, begin=reference.steps)

    def _moved(
        self, stage: BackwardStage, config: RestartsConfig, summaries: Iterable[EpisodeSummary]
    ) -> BackwardStage:
        outcomes = outcomes_by_point(summaries, start_points(stage.begin, config))
        begin = earliest_mastered(stage.begin, outcomes, config.threshold)
        tried = [reached for point, found in outcomes.items() if point for reached in found]
        self.figures = {
            "restarts/backward_begin": float(begin),
            "restarts/backward_steps": float(stage.trajectory.steps),
            "restarts/backward_episodes": float(len(tried)),
        }
        if tried:
            self.figures["restarts/backward_success"] = sum(tried) / len(tried)
        return stage.model_copy(update={"begin": begin})


def imitation_weight(stage: BackwardStage | None) -> float:
    """How much the demonstration is imitated: less once the curriculum has arrived, so that rewards decide."""
    return ARRIVED_IMITATION if stage is not None and not stage.begin else 1.0


def outcomes_by_point(summaries: Iterable[EpisodeSummary], points: Iterable[int]) -> dict[int, list[bool]]:
    """Which complete episodes reached the goal, by the point at which they began; 0 is the true start.

    The end of the epoch cuts long episodes short, which says nothing about them.
    """
    names = {start_name(point): point for point in points if point}
    outcomes: dict[int, list[bool]] = {}
    for summary in summaries:
        point = 0 if summary.from_start else names.get(summary.start)
        if point is not None and summary.complete and GOAL in summary.facts:
            outcomes.setdefault(point, []).append(bool(summary.facts[GOAL]))
    return outcomes
