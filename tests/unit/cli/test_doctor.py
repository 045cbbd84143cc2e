"""The doctor says what it saw, and for each failure how to mend it."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli.commands import doctor
from cli.commands.doctor import CheckResult, api, examine, game, judges, program, reach
from cli.stack.layout import Connection, StackLayout
from shared.errors import Transient


def gone(tmp_path: Path) -> Connection:
    """A system that was here once."""
    return Connection("http://127.0.0.1:9", StackLayout(tmp_path).secret("operator"), 1, {})


def test_a_healthy_machine_without_a_system_has_no_failure(tmp_path: Path) -> None:
    findings = list(examine(None, tmp_path / "connection.json"))
    assert [finding.name for finding in findings if not finding.well] == []
    assert findings[-1] == CheckResult("system", True, "none runs here (`zelda up` starts one)")


def test_a_damaged_connection_is_a_finding_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "connection.json").write_text("{")
    found = list(examine(None, tmp_path / "connection.json"))[-1]
    assert (found.name, found.well) == ("system", False)
    assert found.fix.startswith("rm ")


def test_a_connection_that_knows_nothing_fails_every_check_of_the_system(tmp_path: Path) -> None:
    gone(tmp_path).save(tmp_path / "connection.json")
    failed = [finding.name for finding in examine(None, tmp_path / "connection.json") if not finding.well]
    assert failed == ["coordinator", "store", "bus", "judges"]


def test_a_missing_program_comes_with_its_fix() -> None:
    found = program("no-such-server")
    assert (found.well, found.seen) == (False, "not found")
    assert found.fix.startswith("no-such-server is not installed: run `make setup`")


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", {"judge": ("httpx", "no_such_package")})
    (found,) = doctor.packages()
    assert (found.well, found.seen) == (False, "without no_such_package")
    assert "zelda-rlaif[judge]" in found.fix


def test_an_unknown_rom_is_told_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "game.gbc"
    path.write_bytes(b"not a game")
    found = game(path)
    assert not found.well
    assert found.seen.startswith("unknown ROM with MD5 ")
    assert not game(tmp_path / "nothing.gbc").well


def test_a_system_that_is_gone_is_told(tmp_path: Path) -> None:
    found = api(gone(tmp_path))
    assert not found.well
    assert "does not answer" in found.seen


def test_a_store_that_is_away_is_told(tmp_path: Path) -> None:
    def away(_: Connection) -> str:
        raise Transient("store not reached: refused")

    found = reach("store", gone(tmp_path), away)
    assert (found.well, found.seen) == (False, "store not reached: refused")
    assert "zelda run logs store" in found.fix


class OneModel(BaseHTTPRequestHandler):
    """A server that serves one model."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": [{"id": "qwen"}]}')

    def log_message(self, format: str, *args: Any) -> None:
        """NoShaping listens."""


def test_the_judges_of_ones_own_are_looked_at_and_not_the_rules_judge_beside_them(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), OneModel) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}/v1"
        (tmp_path / "judges.yaml").write_text(
            f"routes: {{here: {{url: '{here}'}}, away: {{url: 'http://127.0.0.1:9/v1'}}}}\n"
            "judges:\n- {name: good, route: here, model: qwen, dimensions: [progress]}\n"
            "- {name: misspelt, route: here, model: gwen, dimensions: [dialog]}\n"
            "- {name: gone, route: away, model: qwen, dimensions: [puzzle]}\n"
        )
        own = {"ZELDA_JUDGES_FILE": str(tmp_path / "judges.yaml")}
        found = list(judges(Connection("http://x", tmp_path, 1, own)))
        server.shutdown()
    assert [(one.name, one.well) for one in found] == [("judges' route here", False), ("judges' route away", False)]
    assert found[0].seen == f"{here} serves qwen, not gwen"
    assert found[1].seen.startswith("http://127.0.0.1:9/v1: route away: ConnectError")


def test_judges_that_need_no_server_are_well(tmp_path: Path) -> None:
    (tmp_path / "judges.yaml").write_text("judges: [{name: r, kind: rules, dimensions: [progress], votes: [1]}]")
    (found,) = judges(Connection("http://x", tmp_path, 1, {"ZELDA_JUDGES_FILE": str(tmp_path / "judges.yaml")}))
    assert found.well
