"""The restarts of one epoch, as every environment receives them. Plain picklable data."""

from dataclasses import dataclass

from services.trainer.other_ways.trail_map import TrailMap
from services.trainer.restarts.collector import Known, PathStart
from services.trainer.state_archive.cell import TILES_PER_CELL
from services.trainer.state_archive.goal import ArchiveGoal, TrajectoryLeg
from shared.game.emulator.start import StartState


@dataclass(frozen=True)
class RestartPlan:
    """Where episodes begin, and which archive cells are known."""

    starts: tuple[StartState | None, ...]
    """Each episode draws one of them; None is the true start."""
    paths: dict[str, PathStart]
    """By the name of a start state: the path into it."""
    known: Known
    goal: ArchiveGoal | None = None
    """Of the backward curriculum: summaries say which episodes reached it."""
    tiles_per_cell: int = TILES_PER_CELL
    legs: tuple[TrajectoryLeg, ...] = ()
    """Of the curriculum's trajectory: an episode goes on while it reaches one goal of a mastered leg after another."""
    trail: TrailMap | None = None
    """Set if episodes that have lost the way are shown the way back to the curriculum's trajectory."""
