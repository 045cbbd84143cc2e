"""`zelda judge labels` asks no judge: without enough answers it says which command makes them."""

from pathlib import Path

from typer.testing import CliRunner

from cli.commands.judge import app
from cli.errors import FAILED, USAGE, CliError
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
