"""The backward curriculum of a run: from the stage that an order pins to the epoch's starts, and to the next stage."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from services.trainer.domain.backward import (
    ARRIVED_IMITATION,
    FIRST_SUCCESS,
    OWN_IMITATION,
    earliest_mastered,
    leg_at,
    longest_episode,
    points_of_legs,
    smoothed_success,
    spread_points,
    start_step,
    true_starts,
)
from services.trainer.domain.epoch_metrics import GOAL, LEG, EpisodeSummary
from services.trainer.restarts.collector import Known, PathStart
from services.trainer.restarts.plan import RestartPlan
from services.trainer.restarts.run_archive import RunArchive
from services.trainer.restarts.trajectories import ArchiveTrajectories
from services.trainer.restarts.trajectory_player import point_of
from services.trainer.state_archive.goal import TrajectoryLeg, next_goal
from services.trainer.state_archive.selection import Score
from shared.contracts.epoch import ArchiveDemonstrations, BackwardStage
from shared.contracts.learning.restarts import RestartsConfig
from shared.errors import ContractError
from shared.game.emulator.start import StartState


class BackwardCurriculum:
    """Plans the epochs of one run's backward curriculum. It keeps nothing but the figures of the last epoch."""

    def __init__(self, trajectories: ArchiveTrajectories) -> None:
        self._trajectories = trajectories
        self.figures: dict[str, float] = {}
        """Where the curriculum stands after the last epoch, as metrics."""

    def plan(
        self, stage: BackwardStage, config: RestartsConfig, known: Known, epoch: int, epoch_steps: int
    ) -> RestartPlan:
        """The starts of an epoch at this stage, with the share and distances of the run's configuration.

        After the last stage they lie evenly on the trajectory, so that the policy forgets no part of it. Raises
        NotFound, DigestMismatch, ContractError or ReplayMismatch, with its name, if the trajectory is damaged, and
        ContractError if another version cut it into other legs.
        """
        legs, controlled = self._trajectories.outline(stage.trajectory)
        if len(legs) != len(stage.left):
            raise ContractError(
                f"{stage.trajectory.key}: the order knows {len(stage.left)} legs of this trajectory, and this version "
                f"cuts it into {len(legs)}: the run was begun by another version; start a new one"
            )
        aims = _aims(legs, stage, config, epoch, epoch_steps)
        steps = {point: start_step(point, legs[aim], controlled) for point, aim in aims.items()}
        chosen = {point: step for point, step in steps.items() if step is not None}
        trajectory, found = self._trajectories.starts(stage.trajectory, chosen)
        starts: list[StartState | None] = []
        paths: dict[str, PathStart] = {}
        for point, (state, step) in found.items():
            length = longest_episode(legs[aims[point]].end - step)
            starts.append(replace(state, length=length, ends_with_death=True))
            paths[state.name] = PathStart(trajectory.entry, step, follows=step, leg=aims[point])
        starts += [None] * true_starts(len(starts), config.share)
        arrived = stage.arrived
        noted = tuple(leg._replace(mastered=arrived or not left) for leg, left in zip(legs, stage.left, strict=True))
        return RestartPlan(tuple(starts), paths, known, legs[-1].goal, config.cell, noted)

    def next_stage(
        self,
        stage: BackwardStage | None,
        config: RestartsConfig,
        summaries: Sequence[EpisodeSummary],
        archive: RunArchive,
        score: Score | None,
    ) -> BackwardStage | None:
        """The stage after an epoch at `stage`; None while the archive has no goal.

        A curriculum that has arrived goes on with the next goal, if the archive has one worth more.
        """
        self.figures = {}
        if stage is not None:
            stage = self._moved(stage, config, summaries)
        if stage is not None and not stage.arrived:
            return stage
        entry = next_goal(archive.archive, score, None if stage is None else stage.trajectory.entry)
        if entry is None:
            return stage
        (reference,) = self._trajectories.save(archive, [entry])
        left = [leg.end - leg.begin for leg in self._trajectories.outline(reference).legs]
        return BackwardStage(trajectory=reference, left=left)

    def _moved(
        self, stage: BackwardStage, config: RestartsConfig, summaries: Sequence[EpisodeSummary]
    ) -> BackwardStage:
        legs = self._trajectories.outline(stage.trajectory).legs
        reached = outcomes_by_point(summaries)
        left = []
        for leg, steps in zip(legs, stage.left, strict=True):
            outcomes = {point: found for point, found in reached.items() if leg.begin <= point < leg.begin + steps}
            left.append(earliest_mastered(leg.begin + steps, outcomes, config.threshold) - leg.begin)
        success: list[float] = []
        if stage.arrived:
            success = smoothed_success(_success(stage), outcomes_by_leg(summaries, legs))
        self.figures = {
            "restarts/backward_legs": float(len(legs)),
            "restarts/backward_mastered": float(left.count(0)),
            "restarts/backward_left": float(sum(left)),
            "restarts/backward_steps": float(stage.trajectory.steps),
            "restarts/backward_episodes": float(sum(map(len, reached.values()))),
        }
        if reached:
            every = [one for found in reached.values() for one in found]
            self.figures["restarts/backward_success"] = sum(every) / len(every)
        if success:
            self.figures["restarts/backward_hardest"] = min(success)
        return stage.model_copy(update={"left": left, "success": success})


def imitation_weight(demonstrations: ArchiveDemonstrations | None) -> float:
    """How much is imitated: less once the curriculum has arrived, so that rewards decide."""
    if demonstrations is None or demonstrations.backward is None or not demonstrations.backward.arrived:
        return 1.0
    return OWN_IMITATION if demonstrations.passes else ARRIVED_IMITATION


def outcomes_by_point(summaries: Iterable[EpisodeSummary]) -> dict[int, list[bool]]:
    """Which episodes reached their goal, by the point of the trajectory at which they began.

    An episode that the end of the epoch cut short counts only if it had reached its goal by then.
    """
    outcomes: dict[int, list[bool]] = {}
    for summary in summaries:
        point, reached = point_of(summary.start), bool(summary.facts.get(GOAL))
        if point is not None and (summary.complete or reached) and GOAL in summary.facts:
            outcomes.setdefault(point, []).append(reached)
    return outcomes


def outcomes_by_leg(summaries: Iterable[EpisodeSummary], legs: Sequence[TrajectoryLeg]) -> dict[int, list[bool]]:
    """Which episodes passed each leg that they came to. One that was cut short says nothing of the leg it was on."""
    outcomes: dict[int, list[bool]] = {}
    for summary in summaries:
        point = 0 if summary.from_start else point_of(summary.start)
        if point is None or LEG not in summary.facts:
            continue
        first, last = leg_at(legs, point), int(summary.facts[LEG])
        for leg in range(first, last):
            outcomes.setdefault(leg, []).append(True)
        if summary.complete and last < len(legs):
            outcomes.setdefault(last, []).append(False)
    return outcomes


def _success(stage: BackwardStage) -> list[float]:
    return stage.success or [FIRST_SUCCESS] * len(stage.left)


def _aims(
    legs: Sequence[TrajectoryLeg], stage: BackwardStage, config: RestartsConfig, epoch: int, epoch_steps: int
) -> dict[int, int]:
    """The points of an epoch, each with the number of the leg whose goal its episodes are to reach."""
    if stage.arrived:
        return {point: leg_at(legs, point) for point in spread_points(legs, _success(stage), epoch)}
    points = points_of_legs(legs, stage.left, config, epoch_steps, epoch)
    return {point: number for number, own in enumerate(points) for point in own}
