"""Curriculum states are made once, cached by ROM and emulator version, and match their milestone."""

import io
from pathlib import Path

import pytest

import bramble
from bramble.emulator import BrambleEmulator
from bramble.tools.states import milestone_state
from bramble.worlds.milestones import reached


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAMBLE_CACHE", str(tmp_path))


def test_a_state_is_taken_at_the_step_of_its_milestone() -> None:
    milestones = bramble.world("garden").milestones
    state = milestone_state("garden", "hedge")
    with BrambleEmulator(bramble.build("garden")) as game:
        game.pyboy.load_state(io.BytesIO(state))

        assert [reached(milestone, game.read) for milestone in milestones] == [True, True, False, False]


def test_a_state_is_made_once(tmp_path: Path) -> None:
    first = milestone_state("garden", "start")
    files = sorted(tmp_path.rglob("*.state"))
    for file in files:
        file.write_bytes(b"kept")

    assert [file.stem for file in files] == ["ember", "gate", "hedge", "start", "sword"]
    assert len(first) > 10_000
    assert milestone_state("garden", "start") == b"kept"


def test_an_unknown_milestone_is_refused() -> None:
    with pytest.raises(bramble.WorldError, match="garden has no milestone 'hat': use one of start, sword"):
        milestone_state("garden", "hat")
