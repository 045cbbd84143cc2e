"""Options in the garden: one choice runs to its macro's end, with recorded buttons and a named actor."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.executor.macros import Interact, Macro, MoveTo, PushBlock, UseItem
from services.trainer.executor.outcome import WAIT, GameView
from services.trainer.options.choices import CHOICES
from services.trainer.options.option_runner import OptionRunner
from services.trainer.options.option_sets import choice_names
from services.trainer.recording.recorder import RunnerRecorder
from shared.game.decoding.names import ACTIONS
from shared.game.emulator.emulator import Emulator
from shared.game.recording.replay import verify
from shared.game.recording.segment import OPTION, POLICY, read_segment
from tests.unit.recording.recording_settings import every_segment

WITH_OPTIONS = {"world": "garden", "options": "options/v1", "difficulty": "harmless"}
NAMES = choice_names("options/v1")


@pytest.fixture
def game() -> Iterator[GameSession]:
    session = GameSession(EnvConfig.of(WITH_OPTIONS))
    session.reset()
    yield session
    session.close()


def number(name: str) -> int:
    return NAMES.index(name)


def macro_of(choice: int, view: GameView) -> Macro | None:
    return CHOICES[choice - len(ACTIONS)].make(view)


def runner_of(game: GameSession) -> OptionRunner:
    assert isinstance(game.takeover, OptionRunner)
    return game.takeover


def possible(game: GameSession, *names: str) -> str:
    """The first of these choices that has a macro here."""
    view = GameView(game.state, game.image)
    return next(name for name in names if macro_of(number(name), view) is not None)


def test_choices_are_the_actions_and_then_macros_with_names_of_their_own() -> None:
    assert NAMES[: len(ACTIONS)] == ACTIONS
    assert len(NAMES) == len(set(NAMES)) == len(ACTIONS) + len(CHOICES)


def test_each_choice_gives_its_macro_or_none(game: GameSession) -> None:
    view = GameView(game.state, game.image)
    for place, choice in enumerate(CHOICES, len(ACTIONS)):
        kind = {"leave": MoveTo, "walk": MoveTo, "push": PushBlock, "use": UseItem, "interact": Interact}
        macro = macro_of(place, view)
        assert macro is None or isinstance(macro, kind[choice.name.split(" ")[0]]), choice.name


def test_a_walk_runs_to_its_end_whatever_else_is_chosen(game: GameSession) -> None:
    runner = runner_of(game)
    name = possible(game, "walk to 0,2", "walk to 2,2", "walk to 0,0", "walk to 2,0")
    macro = macro_of(number(name), GameView(game.state, game.image))
    assert isinstance(macro, MoveTo)
    game.step(number(name))
    assert (runner.decided, runner.actor) == (True, OPTION)
    for _ in range(200):
        game.step(ACTIONS.index("a"))  # without effect while the option runs
        if runner.decided:
            break
    steps = game.episode.steps
    assert runner.outcomes == {"done": 1}
    assert runner.actor == POLICY, "the choice made in the step after the end counts"
    assert game.episode.actions[-1] == ACTIONS.index("a")
    assert list(game.episode.actors) == [OPTION] * (steps - 1) + [POLICY]
    assert ACTIONS.index("a") not in game.episode.actions[:-1]
    assert max(game.episode.actions) < len(ACTIONS), "buttons are recorded, not choices"
    assert runner.facts()["option_steps_share"] == pytest.approx((steps - 1) / steps)


def test_an_option_that_leaves_the_room_ends_in_the_next_one(game: GameSession) -> None:
    before = game.state.key
    name = possible(game, "leave up", "leave right", "leave down", "leave left")
    game.step(number(name))
    for _ in range(300):
        if game.state.key != before and runner_of(game).outcomes:
            break
        game.step(WAIT)
    assert game.state.key != before
    assert runner_of(game).outcomes == {"done": 1}


def test_what_is_impossible_is_one_step_of_waiting(game: GameSession) -> None:
    runner = runner_of(game)
    game.step(number("use bombs"))  # the hero has none
    assert list(game.episode.actions) == [WAIT]
    assert (runner.decided, runner.actor) == (True, OPTION)
    game.step(ACTIONS.index("up"))
    assert (runner.decided, runner.actor) == (True, POLICY)
    assert runner.begun == sum(runner.outcomes.values()) == 1


def test_a_new_episode_begins_without_an_option(game: GameSession) -> None:
    game.step(number(possible(game, "walk to 0,2", "walk to 2,2", "walk to 0,0", "walk to 2,0")))
    game.reset()
    game.step(ACTIONS.index("up"))
    assert runner_of(game).decided
    assert list(game.episode.actions) == [ACTIONS.index("up")]


def test_segments_with_options_replay_exactly_and_name_the_actor(tmp_path: Path) -> None:
    session = GameSession(EnvConfig.of(WITH_OPTIONS))
    recorder = RunnerRecorder(session.config, every_segment(tmp_path))
    session.recording = recorder.for_env(0)
    session.reset()
    rng = np.random.default_rng(2)
    for _ in range(1_200):
        if session.step(int(rng.integers(0, len(NAMES)))).report is not None:
            session.reset()
    recorder.close()
    emulator, found = Emulator(session.game), set()
    archives = [path.read_bytes() for path in sorted(tmp_path.rglob("*.zip"))]
    assert len(archives) >= 3
    for archive in archives:
        segment = read_segment(archive)
        assert segment.actors is not None
        assert segment.actions.max() < len(ACTIONS)
        found |= set(segment.actors.tolist())
        verify(segment, emulator)
    emulator.close()
    session.close()
    assert found == {POLICY, OPTION}
