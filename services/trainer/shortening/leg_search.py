"""The search for one leg of a path: a small exploration whose rollouts end at a goal; the best way is kept."""

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from services.trainer.exploration.exploration import CELLS_PER_ROLLOUT, MAX_SEED, ExplorationPlan, RolloutRunner
from services.trainer.exploration.rollout import FoundState, PlayedRollout, RolloutTask
from services.trainer.shortening.leg_player import LegStart
from services.trainer.state_archive.archive import (
    ArchiveEntry,
    PathPart,
    PathQuality,
    StateArchive,
    in_one_episode,
    is_cheaper,
)
from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.goal import PathGoal
from services.trainer.state_archive.selection import select

MAX_STEPS: Final = 800_000  # of search without a way; an exploration found one, but from another state
LEG_STREAM: Final = 0x1E6  # of random numbers: the search shares none with the exploration


class LegRunner(RolloutRunner, Protocol):
    """Plays rollouts of one leg after another; workers.RolloutWorkers is one."""

    def forget(self) -> None:
        """Forget the known cells."""
        ...


class LegSearch:
    """The search for the leg with this number. With a known way it looks for a better one."""

    def __init__(
        self,
        plan: ExplorationPlan,
        runner: LegRunner,
        number: int,
        leads: Callable[[PathPart], bool],
        budget: int,
        known: PathQuality | None = None,
    ) -> None:
        """`leads` plays a way from the leg's start: whether it leads to the goal as one episode.

        `budget` is the least steps of search once a way is known: that found first is seldom the shortest. The search
        for a shorter one takes half as long as it took to find the first, or longer.
        """
        self._plan, self._runner, self._leads = plan, runner, leads
        self._rng = np.random.default_rng([LEG_STREAM, plan.seed, number])
        self._archive = StateArchive(is_cheaper)
        self._states: dict[int, FoundState] = {}
        self._best: PathPart | None = None
        self._quality = known
        self._more, self._budget = budget, MAX_STEPS if known is None else budget
        self.steps = 0

    def run(self, start: LegStart, goal: PathGoal, ends: Callable[[], bool] = lambda: False) -> PathPart | None:
        """The best way found from the start to the goal; None if there was none.

        A search that `ends` after a round has not found what a whole one finds: its result must not be used.
        """
        self._runner.forget()
        news: dict[ArchiveCell, PathQuality] = {}
        while self.steps < self._budget and not ends():
            parents = self._parents()
            tasks = [self._task(parent, start, goal) for parent in parents]
            before = len(self._archive.entries)
            for parent, task, result in zip(parents, tasks, self._runner.play(tasks, news), strict=True):
                self._merge(parent, task, result)
            news = {entry.cell: entry.quality for entry in self._archive.entries[before:]}
        return self._best

    def _parents(self) -> list[ArchiveEntry | None]:
        if not len(self._archive):
            return [None]
        count = min(self._plan.rollouts, 1 + len(self._archive) // CELLS_PER_ROLLOUT)
        drawn = select(self._archive, count, self._rng, "novelty")
        return [parent if self._may_improve(parent.quality) else None for parent in drawn]

    def _task(self, parent: ArchiveEntry | None, start: LegStart, goal: PathGoal) -> RolloutTask:
        seed = int(self._rng.integers(0, MAX_SEED))
        if parent is None:
            return RolloutTask(start.state, start.memory, 0, seed, goal, goes_on=start.memory is not None)
        state = self._states[parent.number]
        return RolloutTask(state.state, state.memory, parent.quality.steps, seed, goal, goes_on=True)

    def _merge(self, parent: ArchiveEntry | None, task: RolloutTask, result: PlayedRollout) -> None:
        self.steps += len(result.actions)
        self._archive.visits.update(result.seen)
        seed = task.game_seed if parent is None else parent.seed  # the first rollout's generator goes on
        for found in result.found:
            if not self._may_improve(found.quality):
                continue
            part = PathPart(seed, result.actions[: found.actions])
            if result.arrived and found is result.found[-1]:
                self._arrive(parent, part, found)
            elif self._archive.wants(found.cell, found.quality):
                self._keep(parent, part, found)

    def _keep(self, parent: ArchiveEntry | None, part: PathPart, found: FoundState) -> None:
        number, above = len(self._archive.entries), None if parent is None else parent.number
        self._archive.add(ArchiveEntry(number, found.cell, above, *part, found.quality, found.digest, found.counters))
        self._states[number] = found

    def _arrive(self, parent: ArchiveEntry | None, part: PathPart, found: FoundState) -> None:
        way = in_one_episode((*(() if parent is None else self._archive.trajectory(parent)), part))
        if not self._leads(way):
            return
        if self._quality is None:
            self._budget = self.steps + max(self._more, self.steps // 2)
        self._best, self._quality = way, found.quality

    def _may_improve(self, quality: PathQuality) -> bool:
        """Whether a way through a state of this quality may cost less than the best one, if it loses no more hearts."""
        return self._quality is None or quality.cost < self._quality.cost
