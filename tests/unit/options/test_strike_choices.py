"""A policy that may strike: one choice walks up to an enemy and presses the button, until the strike has ended."""

from collections.abc import Iterator

import pytest

from bramble.solver.walkthrough import solve
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.executor.outcome import WAIT, A
from services.trainer.options.option_runner import OptionRunner
from services.trainer.options.option_sets import choice_names, strike_choices, strikes_by_size
from services.trainer.state_archive.goal import enemy_health_of
from shared.contracts.run import RunConfig
from shared.game.decoding.names import ACTIONS
from shared.game.recording.segment import OPTION, POLICY

STRIKING = EnvConfig.of_run(RunConfig(world="vale", frame_skip=4, actions="actions/v1", options="strike/v1"))
STRIKE = strike_choices("strike/v1")[A]
WALK = 345
"""Steps of the walk-through until the hero has the sword and stands before two enemies."""


@pytest.fixture
def game() -> Iterator[GameSession]:
    session = GameSession(STRIKING)
    session.reset()
    yield session
    session.close()


def runner_of(game: GameSession) -> OptionRunner:
    assert isinstance(game.takeover, OptionRunner)
    return game.takeover


def test_each_button_strikes_by_a_choice_of_its_own() -> None:
    names = choice_names("strike/v1")
    assert names == (*ACTIONS, "strike with A", "strike with B")
    assert names[STRIKE] == "strike with A"
    assert strike_choices("options/v1") == strike_choices("none") == {}
    assert choice_names("strike/v2") == names
    assert [strikes_by_size(version) for version in ("none", "strike/v1", "strike/v2")] == [False, False, True]


def test_without_an_enemy_a_strike_is_one_step_of_waiting(game: GameSession) -> None:
    assert not game.state.enemies
    game.step(STRIKE)
    game.step(ACTIONS.index("up"))
    assert list(game.episode.actions) == [WAIT, ACTIONS.index("up")]
    assert list(game.episode.actors) == [OPTION, POLICY]
    assert runner_of(game).outcomes == {"impossible": 1}


def test_choosing_to_strike_again_and_again_wins_a_fight(game: GameSession) -> None:
    for action in solve("vale").actions[:WALK]:
        game.step(action)
    enemies, runner = enemy_health_of(game.state), runner_of(game)
    assert enemies > 0
    for _ in range(400):
        if not enemy_health_of(game.state):
            break
        game.step(STRIKE)
        assert runner.actor == OPTION
    assert enemy_health_of(game.state) == 0
    struck = list(game.episode.actions)[WALK:]
    assert struck.count(A) >= enemies, "buttons are recorded, not choices"
    assert runner.begun < len(struck) / 4, "one choice lasts many steps"
