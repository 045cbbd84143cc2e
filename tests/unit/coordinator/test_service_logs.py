"""Log lines of a local system: of one run, of bounded size, for operators, and nothing but logs."""

import json
from pathlib import Path

import pytest

from services.coordinator.readmodels.service_logs import MAX_BYTES, MAX_LINE, ServiceLogs
from shared.store.port import NotFound
from tests.unit.coordinator.api_client import OPERATOR, VIEWER, client
from tests.unit.coordinator.harness import RUN, Harness

LINES = [
    json.dumps({"event": "driver started", "run": RUN}),
    json.dumps({"event": "driver started", "run": "another"}),
    "Traceback (most recent call last):",
    json.dumps(["no", "fields"]),
    json.dumps({"event": "service started"}),
]
ROUTE = f"/runs/{RUN}/logs"


def logs(directory: Path) -> ServiceLogs:
    """A directory with one log and one secret beside it."""
    folder = directory / "logs"
    folder.mkdir()
    (folder / "trainer.log").write_text("\n".join(LINES) + "\n")
    (directory / "secret.log").write_text("secret")
    return ServiceLogs(folder)


def test_lines_about_other_runs_are_left_out(tmp_path: Path) -> None:
    found = logs(tmp_path)
    assert found.tail("trainer", 10) == LINES
    assert found.tail("trainer", 10, RUN) == [LINES[0], *LINES[2:]]
    assert found.tail("trainer", 1, RUN) == LINES[-1:]


@pytest.mark.parametrize("name", ["../secret", "judge", "", "/etc/passwd", "trainer.log", "*"])
def test_nothing_but_a_log_is_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFound, match="choose from trainer"):
        logs(tmp_path).tail(name, 10)


def test_only_the_end_of_a_huge_log_is_read(tmp_path: Path) -> None:
    found = logs(tmp_path)
    (tmp_path / "logs/trainer.log").write_bytes(b"first\n" + b"x" * (MAX_BYTES + 10) + b"\n" + b"\xff last\n")
    assert found.tail("trainer", 1_000) == ["\ufffd last"]
    (tmp_path / "logs/trainer.log").write_text("y" * (MAX_LINE + 1))
    assert found.tail("trainer", 1) == ["y" * MAX_LINE + "…"]


async def test_an_operator_reads_the_lines_of_a_run(tmp_path: Path) -> None:
    harness = Harness()
    await harness.create_run()
    harness.logs = logs(tmp_path)
    async with client(harness, tmp_path, OPERATOR) as http:
        found = (await http.get(ROUTE, params={"lines": 2})).json()
        absent = await http.get(ROUTE, params={"process": "../secret"})
    assert found == {"processes": ["trainer"], "process": "trainer", "lines": LINES[-2:]}
    assert absent.status_code == 404


async def test_a_viewer_reads_no_logs(tmp_path: Path) -> None:
    harness = Harness()
    await harness.create_run()
    harness.logs = logs(tmp_path)
    async with client(harness, tmp_path, VIEWER) as http:
        response = await http.get(ROUTE)
    assert response.status_code == 403
    assert response.json()["detail"] == "This token may not read logs: use an operator's token."


async def test_a_cluster_says_where_its_logs_are(tmp_path: Path) -> None:
    harness = Harness()
    await harness.create_run()
    async with client(harness, tmp_path, OPERATOR) as http:
        response = await http.get(ROUTE)
    assert response.status_code == 404
    assert "oc logs deploy/zelda-trainer" in response.json()["detail"]
