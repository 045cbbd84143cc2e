"""`zelda explore`: a table, a results file and an archive; bad input gets one sentence."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import av
import pytest

from cli.commands.explore import _plan, explore
from cli.errors import FAILED, USAGE, CliError
from services.trainer.exploration.archive_file import ArchiveFile
from services.trainer.exploration.exploration import Exploration


def arguments(folder: Path, **other: object) -> dict[str, object]:
    usual: dict[str, object] = {"world": "garden", "steps": 1, "seed": 0, "jobs": 1, "selection": "novelty"}
    return {
        **usual,
        "options": "room",
        "cell": 4,
        "frame_skip": 4,
        "out": folder,
        "results": None,
        "video": None,
        "as_json": False,
        **other,
    }


def test_the_same_command_prints_the_finished_exploration_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    explore(**arguments(tmp_path))  # type: ignore[arg-type]
    printed = capsys.readouterr().out
    assert "milestones in the archive: " in printed
    assert "  sword\n" in printed
    explore(**arguments(tmp_path))  # type: ignore[arg-type]
    assert capsys.readouterr().out == printed
    (result,) = json.loads((tmp_path / "result.json").read_text())["explorations"]
    assert (result["world"], result["seed"], len(result["milestones"])) == ("garden", 0, 4)
    assert result["command"].startswith("zelda explore garden --seed 0 --steps ")


def test_what_explored_nothing_keeps_the_date_and_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explore(**arguments(tmp_path))  # type: ignore[arg-type]
    before = (tmp_path / "result.json").read_bytes()
    monkeypatch.setattr("cli.commands.explore.commit", lambda: "later")
    explore(**arguments(tmp_path))  # type: ignore[arg-type]
    assert (tmp_path / "result.json").read_bytes() == before
    explore(**arguments(tmp_path, steps=2_000))  # type: ignore[arg-type]
    (result,) = json.loads((tmp_path / "result.json").read_text())["explorations"]
    assert result["commit"] == "later"


def test_the_progress_line_is_cleared_before_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    explore(**arguments(tmp_path))  # type: ignore[arg-type]
    shown = capsys.readouterr().err
    assert " steps/s, " in shown
    assert f"\r\x1b[2KArchive: {tmp_path}" in shown


def test_an_interrupt_clears_the_progress_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: Exploration, workers: object, steps: int, show: Callable[[], None]) -> None:
        show()
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(Exploration, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        explore(**arguments(tmp_path))  # type: ignore[arg-type]
    assert capsys.readouterr().err.endswith("\r\x1b[2KStopped. The same command continues with the last whole round.\n")


def test_the_best_path_becomes_a_video_with_a_picture_for_each_step(tmp_path: Path) -> None:
    explore(**arguments(tmp_path, steps=4_000, seed=1, video=tmp_path / "best.mp4"))  # type: ignore[arg-type]
    plan = _plan("garden", 1, "novelty", "room", 4, 4)
    archive = ArchiveFile(tmp_path / "archive.sqlite", {**plan.facts(), "rom": plan.open_game().digest})
    path = Exploration(plan, b"", archive).best_path()
    archive.close()
    with av.open(str(tmp_path / "best.mp4")) as video:
        shown = sum(1 for _ in video.decode(video=0))
    assert shown == sum(len(part.actions) for part in path) > 0


def test_without_a_milestone_there_is_a_result_and_no_video(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CliError, match=r"best.mp4 is not written: no path of the archive reaches a milestone") as error:
        explore(**arguments(tmp_path, video=tmp_path / "best.mp4"))  # type: ignore[arg-type]
    assert error.value.code == FAILED
    assert "milestones in the archive: 0 of 4" in capsys.readouterr().out
    assert not (tmp_path / "best.mp4").exists()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"selection": "judges"}, "--selection judges: choose from novelty, random"),
        ({"options": "maze"}, "--options maze: choose from room, sticky"),
        ({"world": "vall"}, "did you mean vale?"),
        ({"results": Path("no/x.json")}, "for x.json does not exist: create it first"),
        ({"video": Path("no/x.mp4")}, "for x.mp4 does not exist: create it first"),
        ({"out": Path(__file__)}, "test_explore.py is not a directory"),
    ],
)
def test_a_wrong_argument_is_refused_before_any_work(tmp_path: Path, wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(CliError, match=sentence) as error:
        explore(**arguments(tmp_path / "none", **wrong))  # type: ignore[arg-type]
    assert error.value.code == USAGE
    assert not (tmp_path / "none").exists()


def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"notes": []}')
    with pytest.raises(CliError, match="is not a file of explorations"):
        explore(**arguments(tmp_path, results=tmp_path / "notes.json"))  # type: ignore[arg-type]
    assert json.loads((tmp_path / "notes.json").read_text()) == {"notes": []}
