"""A trajectory's fights are found in it, and won in many ways."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from bramble.solver.walkthrough import solve
from services.trainer.domain.backward import OPENING
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession, StepResult
from services.trainer.executor.outcome import WALK as WALK_ACTIONS
from services.trainer.executor.outcome import A, GameView
from services.trainer.options.option_sets import strike_choices
from services.trainer.options.strikes import Striker
from services.trainer.other_ways.courses import present_state
from services.trainer.other_ways.fights import KEPT, MAX_WINS, Fight, FightMoment, WonFight, fights_of, wins_of
from services.trainer.restarts.trajectory import Trajectory
from services.trainer.restarts.trajectory_player import TrajectoryPlayer
from services.trainer.state_archive.goal import enemy_health_of
from shared.contracts.run import RunConfig
from shared.game.emulator.start import StartState, true_start
from studies.gate.solver_play import EpisodeEnded
from tests.unit.env.scripted_play import solve_with
from tests.unit.trainer.archived_play import played_path

CONFIG = EnvConfig.of_run(RunConfig(world="vale", frame_skip=4, actions="actions/v1"))
HERE, THERE = (0, 1), (0, 2)
BOSS = 4, 0x52
WALK = 345
"""Steps of the walk-through until the hero has the sword and stands before two enemies."""


def stay(room: tuple[int, int], *left: int, control: bool = True) -> list[FightMoment]:
    return [FightMoment(room, enemy_health, control) for enemy_health in left]


def test_a_fight_lasts_from_the_first_enemy_in_sight_to_the_last_hit() -> None:
    entered, fought = stay(HERE, 3, 3, control=False), stay(HERE, 3, 3, 2, 2, 1, 1, 1)
    assert fights_of([*stay(THERE, 0, 0), *entered, *fought]) == [Fight(HERE, 4, 8, 1)]


@pytest.mark.parametrize(
    "moments",
    [
        [],
        stay(HERE, 0, 0, 0),
        stay(HERE, 3, 3, 3),
        [*stay(HERE, 3, 3), *stay(THERE, 2, 2)],
        stay(HERE, 3, 3, 2, control=False),
    ],
    ids=["nothing", "without enemies", "without a hit", "other enemies in another room", "without control"],
)
def test_a_stay_without_a_hit_is_no_fight(moments: Sequence[FightMoment]) -> None:
    assert fights_of(moments) == []


def test_each_stay_in_a_room_is_a_fight_of_its_own() -> None:
    twice = [*stay(HERE, 3, 2), *stay(THERE, 0), *stay(HERE, 3, 1)]
    assert fights_of(twice) == [Fight(HERE, 0, 1, 2), Fight(HERE, 3, 4, 1)]


def fought_path() -> Trajectory:
    """A path of the vale that walks up to two enemies, for WALK steps, and strikes at them."""
    session = GameSession(CONFIG)
    session.begin(true_start(session.game), 1)
    for action in solve("vale").actions[:WALK]:
        session.step(action)
    striker = Striker(A, np.random.default_rng(3))
    while enemy_health_of(session.state):
        session.step(striker.next(GameView(session.state, session.image)))
    path = played_path(session)
    session.close()
    return path


@pytest.fixture(scope="module")
def path() -> Trajectory:
    return fought_path()


@pytest.fixture(scope="module")
def player() -> Iterator[TrajectoryPlayer]:
    made = TrajectoryPlayer(CONFIG)
    yield made
    made.close()


def won_fights(player: TrajectoryPlayer, path: Trajectory) -> list[WonFight]:
    return player.won_fights(path, "path", player.outline(path, "path").legs)


def test_a_fight_is_won_in_many_ways_and_always_the_same(path: Trajectory, player: TrajectoryPlayer) -> None:
    (won,), (again,) = won_fights(player, path), won_fights(player, path)
    assert won.fight.begin < WALK < won.fight.end == path.steps, "the last action of the path is its last hit"
    assert won.fight.enemy_health == 0
    assert {one.course.leg for one in won.wins} == {len(player.outline(path, "path").legs) - 1}
    courses = {one.course.actions.tobytes() for one in won.wins}
    assert len(courses) == len(won.wins) == KEPT, "no two wins take the same course"
    assert courses == {one.course.actions.tobytes() for one in again.wins}
    assert all(one.course.observations.shape == (len(one.course.actions), 148) for one in won.wins)


def test_a_policy_that_may_strike_is_shown_its_choices(path: Trajectory) -> None:
    player = TrajectoryPlayer(CONFIG.model_copy(update={"options": "strike/v1"}))
    (won,) = won_fights(player, path)
    player.close()
    strike = strike_choices("strike/v1")[A]
    for win in won.wins:
        assert strike in win.course.actions
        assert set(win.course.actions.tolist()) <= {strike, *WALK_ACTIONS}, "detours are walked, strikes are chosen"
        assert len(win.course.actions) < won.fight.end - won.fight.begin, "a strike is one row"


def test_the_wins_that_cost_least_are_kept(path: Trajectory, player: TrajectoryPlayer) -> None:
    (won,) = won_fights(player, path)
    costs = [(one.lost_health, len(one.course.actions)) for one in won.wins]
    assert costs == sorted(costs)


class CountedTries(GameSession):
    """Counts the tries of a fight."""

    tries = 0

    def reset(self) -> NDArray[np.float32]:
        self.tries += 1
        return super().reset()


def test_sized_strikes_beat_the_boss_from_the_door_of_its_room() -> None:
    session = CountedTries(CONFIG.model_copy(update={"options": "strike/v2"}))
    found: list[StartState] = []

    def observe(game: GameSession, _action: int, _outcome: StepResult) -> None:
        if game.state.key == BOSS and game.state.enemies and game.state.control:
            found.append(replace(present_state(game, "at the door"), opening=OPENING))
            raise EpisodeEnded

    session.begin(true_start(session.game), 1)
    solve_with(session, "vale", observe)
    wins = wins_of(session, Fight(BOSS, 0, 60, 0), 0, found[0])
    session.close()
    assert len(wins) == KEPT
    assert session.tries < 1.5 * MAX_WINS, "most tries win, and none leaves the room before it begins"
