"""How actions press buttons: actions/v2 presses again with every step, actions/v1 holds what stays the same."""

import pytest

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession, StepResult
from shared.contracts.run import ActionsName
from shared.game.decoding.names import ACTIONS
from shared.game.decoding.state import GameState
from studies.gate.solver_play import EpisodeEnded
from tests.unit.env.scripted_play import playing, solve_with

PRESS_A = ACTIONS.index("a")
PATIENCE = 120  # steps


def pressing_a_through_a_conversation(actions: ActionsName) -> list[GameState]:
    """Walk to garden's gardener, address him, and play nothing but A; the states from the first page on."""

    def stop_at_the_first_text(session: GameSession, action: int, result: StepResult) -> None:
        if session.state.dialog is not None:
            raise EpisodeEnded

    with playing(EnvConfig.of({"world": "garden", "actions": actions})) as session:
        solve_with(session, "garden", stop_at_the_first_text)
        states = [session.state]
        while session.state.dialog is not None and len(states) < PATIENCE:
            session.step(PRESS_A)
            states.append(session.state)
    return states


def waiting_runs(states: list[GameState]) -> list[int]:
    """How many steps in a row each finished page waited for a button."""
    runs, length = [], 0
    for state in states:
        if state.dialog is not None and state.dialog.waiting:
            length += 1
        elif length:
            runs.append(length)
            length = 0
    return [*runs, length] if length else runs


def test_one_text_page_takes_one_press_of_a() -> None:
    states = pressing_a_through_a_conversation("actions/v2")
    assert states[-1].dialog is None
    assert set(waiting_runs(states)) == {1}


def test_holding_a_turns_no_second_page_in_the_earlier_version() -> None:
    states = pressing_a_through_a_conversation("actions/v1")
    assert states[-1].dialog is not None
    assert len(waiting_runs(states)) == 1


@pytest.mark.parametrize("frame_skip", [2, 3, 4, 24])
def test_a_press_and_its_release_fit_one_step(frame_skip: int) -> None:
    with playing(EnvConfig.of({"world": "garden", "frame_skip": frame_skip})) as session:
        before = session.emulator.frames
        session.step(PRESS_A)
        assert session.emulator.frames - before == frame_skip
        assert session.emulator._held is None
