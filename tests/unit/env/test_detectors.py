"""Detectors are steady where the game flickers, and see what stands still."""

import pytest

from services.trainer.env.config import EnvConfig
from services.trainer.env.detectors import LOOP_WINDOW, STUCK_AFTER, Hysteresis
from tests.unit.env.scripted_play import play, playing, solve

LEFT, RIGHT = 3, 4


@pytest.mark.parametrize(
    ("readings", "values"),
    [
        ("0110", "0000"),  # two are not enough
        ("0111000", "0001110"[:6] + "0"),
        ("1110111", "0011111"),  # one gap does not end it
    ],
)
def test_a_value_changes_after_three_equal_readings(readings: str, values: str) -> None:
    smooth = Hysteresis()

    seen = "".join(str(int(smooth.update(reading == "1"))) for reading in readings)

    assert seen == values


def test_standing_still_is_noticed_and_moving_ends_it() -> None:
    with playing(EnvConfig(world="garden")) as session:
        play(session, STUCK_AFTER + 1, lambda step: 0)
        assert session.detectors.stuck
        play(session, 20, lambda step: LEFT)
        assert not session.detectors.stuck


def test_a_hero_without_control_is_not_stuck() -> None:
    with playing(EnvConfig(world="garden")) as session:
        play(session, STUCK_AFTER + 1, lambda step: 0)
        state = session.state
        session.detectors.step(state, state._replace(control=False))
        assert not session.detectors.stuck
        session.detectors.step(state, state)
        assert session.detectors.stuck


def test_walking_in_circles_is_noticed() -> None:
    with playing(EnvConfig(world="garden")) as session:
        play(session, LOOP_WINDOW * 20, lambda step: RIGHT if step // 12 % 2 else LEFT)
        assert session.detectors.loop


def test_the_solver_is_seen_in_dialogs_and_puzzles_and_never_in_loops() -> None:
    seen = {"dialog": 0, "puzzle": 0, "loop": 0, "gain": 0}

    def observe(session: object, action: int, outcome: object) -> None:
        detectors = session.detectors  # type: ignore[attr-defined]
        seen["dialog"] += detectors.dialog
        seen["puzzle"] += detectors.puzzle
        seen["loop"] += detectors.loop
        seen["gain"] += detectors.puzzle_gain

    solve("vale", observe)

    assert seen["dialog"] > 50
    assert seen["puzzle"] > 10
    assert seen["gain"] >= 4
    assert seen["loop"] == 0
