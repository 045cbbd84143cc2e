"""`zelda judge labels` asks no judge: without enough answers it says which command makes them."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.bank.labels import _replay
from cli.commands.judge import app
from cli.errors import FAILED, USAGE, CliError
from studies.judges.bank import Bank, BankError, BankSegment
from studies.labels.bank_features import BankFeatures
from tests.unit.studies.small_bank import small_bank


def labels(folder: Path, answers: str) -> CliError:
    """The sentence of the command about a small bank."""
    small_bank().save(folder / "small.npz")
    words = ["labels", str(folder / "out" / answers), "--bank", str(folder / "small.npz")]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, CliError), result.output
    return result.exception


def test_few_answers_are_refused_with_the_command_that_asks_for_more(tmp_path: Path) -> None:
    small_bank().save(tmp_path / "small.npz")
    asked = ["bench", "--rules", "--bank", str(tmp_path / "small.npz"), "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(app, asked).exit_code == 0
    problem = labels(tmp_path, "rules")
    assert problem.code == USAGE
    assert "rates 1 segments of the half dev, 20 are needed" in str(problem)
    assert "`zelda judge bench --half dev`" in str(problem)


def test_a_folder_without_answers_is_named(tmp_path: Path) -> None:
    problem = labels(tmp_path, "nothing")
    assert problem.code == FAILED
    assert "holds no answers" in str(problem)


def test_the_progress_line_is_cleared_also_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class FailingFeatures(BankFeatures):
        def add(self, bank: Bank, segments: Iterable[BankSegment], report: Callable[[int, int], None]) -> None:
            report(1, 2)
            raise BankError("another course")

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(BankError):
        _replay(FailingFeatures(Path("features.npz"), {}), small_bank(), [])
    assert capsys.readouterr().err == "\r\x1b[2Kreplayed 1 of 2 episodes\r\x1b[2K"
