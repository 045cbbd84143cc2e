"""`python -m deploy.watch` says what it lacks before it watches for minutes."""

import json
import shutil
from pathlib import Path

import pytest

from deploy.watch.__main__ import main


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Logs of a system of which one service has started, and is gone by now."""
    folder = tmp_path / "logs"
    folder.mkdir()
    line = {"event": "service started", "service": "judge", "address": "127.0.0.1:9"}
    (folder / "judge.log").write_text(json.dumps(line) + "\n")
    return folder


def test_a_missing_prometheus_is_reported_with_a_remedy(
    logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(logs))
    assert main(["--logs", str(logs)]) == 2
    assert capsys.readouterr().err == "no prometheus to watch with: apt-get install prometheus\n"


def test_a_missing_system_is_reported_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--logs", str(tmp_path)]) == 2
    assert "run `zelda up`" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="no prometheus: apt-get install prometheus")
def test_the_picture_folder_is_created(logs: Path, tmp_path: Path) -> None:
    pictures = tmp_path / "new" / "pictures"
    assert main(["--logs", str(logs), "--seconds", "0", "--pictures", str(pictures)]) == 1  # nobody has data
    assert sorted(path.stem for path in pictures.iterdir()) == [
        "dashboard-cost",
        "dashboard-flow",
        "dashboard-learning",
    ]
