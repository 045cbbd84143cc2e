"""The search for one leg of a path: how long it takes, what it continues, and that its way is one episode."""

from collections.abc import Sequence

import pytest

from services.trainer.exploration.exploration import ExplorationPlan, Known
from services.trainer.exploration.rollout import FoundState, PlayedRollout, RolloutTask
from services.trainer.shortening.leg_player import LegStart
from services.trainer.shortening.leg_search import LegSearch
from services.trainer.state_archive.archive import PathPart, PathQuality
from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.goal import PathGoal
from shared.game.observation.counters import LASTING

START = LegStart(b"")
ACTION = bytes([4])


def found(column: int, hearts: int, steps: int, actions: int) -> FoundState:
    """A state in its own cell, after so many of a rollout's actions."""
    cell = ArchiveCell(0, 1, column, 0, (0,) * len(LASTING))
    return FoundState(cell, PathQuality(hearts, steps), actions, "", b"", 0, b"", b"")


class Rounds:
    """Plays the rollouts of a search: in each round one, as `results` say, and then rollouts that find nothing."""

    def __init__(self, *results: PlayedRollout, length: int = 100) -> None:
        self._results, self._length = list(results), length
        self.tasks: list[RolloutTask] = []
        self.news: list[Known] = []
        self.forgotten = 0

    def play(self, tasks: Sequence[RolloutTask], news: Known) -> list[PlayedRollout]:
        self.tasks += tasks
        self.news.append(dict(news))
        nothing = PlayedRollout(bytes(self._length), (), (), died=False, arrived=False)
        return [self._results.pop(0) if self._results else nothing for _ in tasks]

    def forget(self) -> None:
        self.forgotten += 1


def rollout(*states: FoundState, arrived: bool = False) -> PlayedRollout:
    return PlayedRollout(ACTION * 100, (), states, died=False, arrived=arrived)


def searched(runner: Rounds, budget: int, known: PathQuality | None = None) -> tuple[LegSearch, PathPart | None]:
    """A search for one leg with this runner, and the way that it found."""
    search = LegSearch(ExplorationPlan("garden", 1), runner, 0, lambda way: True, budget, known)
    return search, search.run(START, PathGoal((0,) * len(LASTING)))


@pytest.mark.parametrize(("budget", "steps"), [(200, 1_500), (800, 1_800)])
def test_a_search_goes_on_half_as_long_as_it_took_to_find_a_way(budget: int, steps: int) -> None:
    runner = Rounds(*[rollout()] * 9, rollout(found(1, 3, 90, 90), arrived=True))
    search, way = searched(runner, budget)
    assert way is not None
    assert search.steps == steps
    assert runner.forgotten == 1, "the cells of the leg before are none of this one"


def test_a_found_way_is_one_episode_under_the_seed_of_its_beginning() -> None:
    runner = Rounds(rollout(found(1, 3, 30, 30)), rollout(found(2, 3, 80, 50), arrived=True))
    _, way = searched(runner, 200)
    assert way == PathPart(runner.tasks[0].game_seed, ACTION * 80)
    assert (runner.tasks[0].goes_on, runner.tasks[1].goes_on) == (False, True)


def test_a_search_continues_only_what_may_cost_less_than_the_known_way() -> None:
    """Hearts count as steps: of two ways into a cell the cheaper one stays, not the one with more hearts."""
    runner = Rounds(rollout(found(1, 1, 100, 40), found(2, 3, 950, 50)), rollout(found(1, 2, 500, 60)))
    searched(runner, 300, known=PathQuality(3, 900))
    cheap = found(1, 1, 100, 40)
    assert runner.news == [{}, {cheap.cell: cheap.quality}, {}]
