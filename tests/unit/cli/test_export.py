"""`zelda export`: a former data set stays until the new one is complete, and an error in the code is shown as one."""

import shutil
from pathlib import Path

import pytest

from cli.__main__ import exit_code_of
from cli.errors import FAILED, NOT_FOUND, OK, UNREACHABLE, USAGE
from cli.exports.minari_dataset import MinariWriter
from shared.contracts.ids import RunId
from shared.store import keys
from tests.unit.cli.test_ended_system import ARCHIVE, RUN


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; the store holds a finished run with six judged segments."""
    shutil.unpack_archive(ARCHIVE, tmp_path / "store")
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path}/store")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(root: Path) -> dict[Path, bytes]:
    """All files below a folder with their contents."""
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_an_empty_selection_says_whether_scores_were_needed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, kind in ([], "recorded"), (["--best", "3"], "judged"):
        assert exit_code_of(["export", "segments", RUN, "--epoch", "9", *words]) == NOT_FOUND
        assert f"No {kind} segment of {RUN} matches: check the run with" in capsys.readouterr().err


def test_a_minari_data_set_without_scores_is_not_found(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(place / "store" / keys.all_scores_prefix(RunId(RUN)))
    assert exit_code_of(["export", "minari", RUN, "--to", "q"]) == NOT_FOUND
    said = capsys.readouterr().err.splitlines()
    assert said[-2] == "6 segments without a score were left out."
    assert said[-1].startswith(f"zelda: No judged segment of {RUN} matches: ")
    assert not (place / "q").exists()


def test_a_minari_data_set_stays_until_its_successor_is_complete(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert exit_code_of(["export", "minari", RUN]) == OK
    before = files(place / "minari")
    assert exit_code_of(["export", "minari", RUN, "--epoch", "9"]) == NOT_FOUND  # no segment matches

    add = MinariWriter.add

    def fail_at_the_second(self: MinariWriter, segment: object) -> None:
        if self.steps:
            raise OSError(5, "Input/output error", "minari")
        add(self, segment)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(MinariWriter, "add", fail_at_the_second)
        assert exit_code_of(["export", "minari", RUN]) == USAGE

    monkeypatch.delenv("ZELDA_STORE__URL")
    assert exit_code_of(["export", "minari", RUN]) == UNREACHABLE  # no system runs
    assert files(place / "minari") == before


@pytest.mark.parametrize("kind", ["segments", "dataset", "minari"])
@pytest.mark.parametrize("words", [["Bad Name"], [RUN, "--episode", "Bad Name"]])
def test_an_invalid_id_is_refused_in_one_sentence(
    kind: str, words: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["export", kind, *words]) == USAGE
    said = capsys.readouterr().err
    assert said.startswith("zelda: 'Bad Name' is not ")
    assert "Traceback" not in said


def test_a_value_error_of_the_code_shows_its_traceback(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr("services.exporter.on_demand.read_segment", broken)
    assert exit_code_of(["export", "dataset", RUN]) == FAILED
    assert "Traceback" in capsys.readouterr().err
