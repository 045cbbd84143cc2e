"""`zelda judge` and `zelda policy play`: one source of judges; a missing score is an answer, a missing key a bug."""

import shutil
from pathlib import Path

import pytest

from cli.__main__ import exit_code_of
from cli.errors import FAILED, NOT_FOUND, UNREACHABLE, USAGE
from services.judge.offline.compare import MissingScores
from tests.servers import free_ports
from tests.unit.cli.test_ended_system import ARCHIVE, RUN
from tests.unit.cli.test_judge_bench import ABSENT

COMPARE = "services.judge.offline.compare.compare"


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names an empty store."""
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path}")


@pytest.mark.parametrize("words", [("judge", "segments", "m1"), ("judge", "bench"), ("policy", "play", "m1")])
def test_two_sources_of_judges_are_refused(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "judges.yaml"
    file.write_text(ABSENT.format(port=9))
    assert exit_code_of([*words, "--rules", "--judges", str(file)]) == USAGE
    sentence = "zelda: --judges and --rules both choose the judges: use only one of them.\n"
    assert capsys.readouterr().err == sentence


def test_rules_win_over_the_judges_file_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "judges.yaml").write_text(ABSENT.format(port=9))
    monkeypatch.setenv("ZELDA_JUDGES_FILE", str(tmp_path / "judges.yaml"))
    assert exit_code_of(["judge", "segments", "m1", "--rules"]) == NOT_FOUND  # the store has no such run
    assert "Judging m1 into rubric version 'rules' with rules." in capsys.readouterr().err


def test_a_route_without_a_server_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.unpack_archive(ARCHIVE, tmp_path / "store")
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path}/store")
    file = tmp_path / "judges.yaml"
    file.write_text(ABSENT.format(port=free_ports(1)[0]))
    assert exit_code_of(["judge", "segments", RUN, "--judges", str(file)]) == UNREACHABLE
    said = capsys.readouterr().err
    assert said.endswith(": start its server, or name other judges with --judges FILE or --rules.\n")
    assert "ZELDA_" not in said


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MissingScores("run m1 has no scores"), NOT_FOUND, "zelda: run m1 has no scores.\n"),
        (KeyError("progress"), FAILED, "KeyError: 'progress'\n"),
    ],
)
def test_only_missing_scores_are_said_to_be_missing(
    error: Exception, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(COMPARE, fail)
    assert exit_code_of(["judge", "compare", "m1", "a", "b"]) == code
    assert capsys.readouterr().err.endswith(said)
