"""The result of an exploration as data, for its table and for a file that several explorations share."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from services.trainer.exploration.exploration import Exploration
from services.trainer.exploration.progress import CurvePoint


class FoundMilestone(BaseModel):
    """A milestone of the game; `steps` are those of the exploration when the archive had it, None if it has not."""

    model_config = ConfigDict(extra="forbid")

    name: str
    steps: int | None


class ExplorationResult(BaseModel):
    """What an exploration reached, and how to repeat it."""

    model_config = ConfigDict(extra="forbid")

    world: str
    seed: int
    command: str
    commit: str
    date: str
    cores: int
    jobs: int
    plan: dict[str, Any]
    steps: int
    wall_s: float
    rollouts: int
    deaths: int
    cells: int
    entries: int
    rooms: int
    reached: int
    best_path: int
    """The most milestones on one path of the archive."""
    milestones: list[FoundMilestone]
    curve: list[CurvePoint]


class ExplorationResults(BaseModel):
    """The results of several explorations in one file."""

    model_config = ConfigDict(extra="forbid")

    explorations: list[ExplorationResult] = []

    def same(self, result: ExplorationResult) -> ExplorationResult | None:
        """The result of the same plan after the same number of steps, or None."""
        return next((one for one in self.explorations if (one.plan, one.steps) == (result.plan, result.steps)), None)

    def add(self, result: ExplorationResult) -> None:
        """Add a result, in place of an earlier one of the same plan."""
        others = [one for one in self.explorations if one.plan != result.plan]
        self.explorations = sorted([*others, result], key=lambda one: (one.world, one.seed, one.command))


def result_of(exploration: Exploration, milestones: list[str], origin: dict[str, Any]) -> ExplorationResult:
    """The result of an exploration. `milestones` are the game's; `origin` has command, commit, date, cores and jobs."""
    progress, archive = exploration.progress, exploration.archive
    return ExplorationResult(
        world=exploration.plan.world,
        seed=exploration.plan.seed,
        plan=exploration.plan.facts(),
        steps=progress.steps,
        wall_s=round(progress.wall_s, 1),
        rollouts=progress.rollouts,
        deaths=progress.deaths,
        cells=len(archive),
        entries=len(archive.entries),
        rooms=len(archive.rooms()),
        reached=len(progress.reached_at),
        best_path=progress.best_path,
        milestones=[
            FoundMilestone(name=name, steps=progress.reached_at.get(place)) for place, name in enumerate(milestones)
        ],
        curve=progress.curve,
        **origin,
    )
