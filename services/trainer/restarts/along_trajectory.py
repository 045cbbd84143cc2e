"""Restarts along the trajectory to the most valuable cell of a run's archive: short episodes from all of its parts.

The backward curriculum learns the end first, and each earlier part with all that follows. Here the parts are learnt at
the same time, each for itself: on a long trajectory that needs fewer steps.
"""

from dataclasses import replace

from services.trainer.domain.curriculum import SLOTS
from services.trainer.domain.trajectory_starts import spread_points
from services.trainer.restarts.collector import Known, PathStart
from services.trainer.restarts.plan import RestartPlan
from services.trainer.restarts.run_archive import RunArchive
from services.trainer.restarts.trajectories import ArchiveTrajectories
from services.trainer.state_archive.goal import ArchiveGoal, next_goal
from services.trainer.state_archive.selection import Score
from shared.contracts.epoch import TrajectoryRef
from shared.contracts.learning.restarts import RestartsConfig


class AlongTrajectory:
    """Plans the epochs of one run that begin along a trajectory."""

    def __init__(self, trajectories: ArchiveTrajectories) -> None:
        self._trajectories = trajectories

    def plan(
        self, reference: TrajectoryRef, config: RestartsConfig, epoch: int, known: Known, length: int | None
    ) -> RestartPlan:
        """The starts of an epoch along this trajectory, with the share of the run's configuration.

        An episode may take `length` steps; without one, as many as the backward curriculum grants it to the end.

        Raises NotFound, DigestMismatch, ContractError or ReplayMismatch, with its name, if the trajectory is damaged.
        """
        count = round(config.share * SLOTS)
        points = spread_points(reference.steps, count, epoch)
        trajectory, found = self._trajectories.starts(reference, points)
        states = [replace(start.state, length=length or start.state.length) for start in found.values()]
        drawn = [states[slot % len(states)] for slot in range(count)] if states else []
        paths = {
            start.state.name: PathStart(trajectory.entry, start.step, follows=start.step) for start in found.values()
        }
        starts = (*drawn, *[None] * (SLOTS - len(drawn)))
        return RestartPlan(starts, paths, known, ArchiveGoal(trajectory.cell), config.cell)

    def next(self, archive: RunArchive, score: Score | None, former: TrajectoryRef | None) -> TrajectoryRef | None:
        """The trajectory of the next epoch: that to a cell worth more than the former one's, or the former one."""
        entry = next_goal(archive.archive, score, None if former is None else former.entry)
        return former if entry is None else self._trajectories.save(archive, [entry])[0]
