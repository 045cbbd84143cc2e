"""The measuring scripts answer a person before they measure, which takes minutes."""

import sys
from importlib import import_module

import pytest

SCRIPTS = ("emulator", "env", "judge", "judge_noise", "lean", "replay", "reward_model", "ring")


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("--jsn", 2)])
def test_help_and_a_misspelt_option_end_a_script_before_it_measures(
    name: str, word: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, word])
    with pytest.raises(SystemExit) as left:
        import_module(f"bench.{name}").main()
    assert left.value.code == code
    assert "--json" in "".join(capsys.readouterr())
