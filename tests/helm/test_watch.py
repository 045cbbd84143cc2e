"""`python -m deploy.watch` reports missing requirements before it scrapes for minutes."""

import json
from pathlib import Path

import pytest

from deploy.watch.__main__ import addresses, main
from tests.required_tools import needs


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Logs of a system with one service that started and has ended."""
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
    assert capsys.readouterr().err == "prometheus is not installed: apt-get install prometheus\n"


@pytest.mark.parametrize("address", ["127.0.0.1:9", "0.0.0.0:9", "[::]:9"])
def test_a_service_on_all_addresses_is_read_on_this_machine(address: str, tmp_path: Path) -> None:
    line = {"event": "service started", "service": "judge", "address": address}
    (tmp_path / "judge.log").write_text(json.dumps(line) + "\n")
    assert addresses(tmp_path) == {"judge": "127.0.0.1:9"}


def test_a_missing_system_is_reported_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--logs", str(tmp_path)]) == 2
    assert "run `zelda up`" in capsys.readouterr().err


@needs("prometheus")
def test_the_picture_folder_is_created(logs: Path, tmp_path: Path) -> None:
    pictures = tmp_path / "new" / "pictures"
    assert main(["--logs", str(logs), "--seconds", "0", "--pictures", str(pictures)]) == 1  # no series has data
    assert sorted(path.stem for path in pictures.iterdir()) == [
        "dashboard-cost",
        "dashboard-flow",
        "dashboard-learning",
    ]
