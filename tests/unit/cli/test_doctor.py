"""`zelda doctor` reports what it found and suggests a fix for each failure."""

import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli.commands import doctor
from cli.commands.doctor import (
    CheckResult,
    check_coordinator,
    check_judges,
    check_program,
    check_rom,
    check_server,
    run_checks,
)
from cli.stack.layout import Connection, StackLayout
from shared.errors import Transient


def gone(tmp_path: Path) -> Connection:
    """The saved connection of a stopped system."""
    return Connection("http://127.0.0.1:9", StackLayout(tmp_path).secret("operator"), 1, {})


def test_a_healthy_machine_without_a_system_has_no_failure(tmp_path: Path) -> None:
    results = list(run_checks(None, tmp_path / "connection.json"))
    assert [result.name for result in results if not result.ok] == []
    assert results[-1] == CheckResult("system", True, "not running (start it with `zelda up`)")


def test_a_damaged_connection_is_a_failed_check(tmp_path: Path) -> None:
    (tmp_path / "connection.json").write_text("{")
    found = list(run_checks(None, tmp_path / "connection.json"))[-1]
    assert (found.name, found.ok) == ("system", False)
    assert found.fix.startswith("rm ")


def test_an_empty_connection_fails_every_check_of_the_system(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), OneModel) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url, token = f"http://127.0.0.1:{server.server_port}", StackLayout(tmp_path).secret("operator")
        Connection(url, token, os.getpid(), {}).save(tmp_path / "connection.json")
        failed = [result.name for result in run_checks(None, tmp_path / "connection.json") if not result.ok]
        server.shutdown()
    assert failed == ["coordinator", "store", "bus", "judges"]


def test_a_program_at_the_port_of_a_killed_system_gets_no_token(tmp_path: Path) -> None:
    asked: list[str] = []

    class Stranger(OneModel):
        def do_GET(self) -> None:
            asked.append(self.headers["Authorization"])
            super().do_GET()

    ended = subprocess.Popen(["true"])
    ended.wait()
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url, token = f"http://127.0.0.1:{server.server_port}", StackLayout(tmp_path).secret("operator")
        Connection(url, token, ended.pid, {"ZELDA_JUDGE__DEFAULT_URL": url}).save(tmp_path / "connection.json")
        *_, system, speed = run_checks(None, tmp_path / "connection.json", speed=True)
        server.shutdown()
    assert system == CheckResult("system", True, "not running (start it with `zelda up`)")
    assert (speed.detail, asked) == ("no judges to ask", [])


def test_a_missing_program_comes_with_its_fix() -> None:
    found = check_program("no-such-server")
    assert (found.ok, found.detail) == (False, "not found")
    assert found.fix.startswith("no-such-server is not installed: in the repository, run make setup")


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", {"judge": ("httpx", "no_such_package")})
    (found,) = doctor.check_packages()
    assert (found.ok, found.detail) == (False, "missing no_such_package")
    assert found.fix.endswith("pip install -c .ci/constraints.txt -e '.[judge]'")


def test_an_unknown_rom_is_reported_with_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "game.gbc"
    path.write_bytes(b"not a game")
    found = check_rom(path)
    assert not found.ok
    assert found.detail.startswith("unknown ROM with MD5 ")
    assert not check_rom(tmp_path / "nothing.gbc").ok


def test_a_stopped_system_is_reported(tmp_path: Path) -> None:
    found = check_coordinator(gone(tmp_path))
    assert not found.ok
    assert "does not answer" in found.detail


def test_an_unreachable_store_is_reported(tmp_path: Path) -> None:
    def away(_: Connection) -> str:
        raise Transient("store not reached: refused")

    found = check_server("store", gone(tmp_path), away)
    assert (found.ok, found.detail) == (False, "store not reached: refused")
    assert "zelda run logs store" in found.fix


class OneModel(BaseHTTPRequestHandler):
    """A server that serves one model."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": [{"id": "qwen"}]}')

    def log_message(self, format: str, *args: Any) -> None:
        """Suppress the access log."""


def test_routes_of_a_judges_file_are_checked_instead_of_the_rules_judge(tmp_path: Path) -> None:
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
        found = list(check_judges(Connection("http://x", tmp_path, 1, own)))
        server.shutdown()
    assert [(one.name, one.ok) for one in found] == [("judges' route here", False), ("judges' route away", False)]
    assert found[0].detail == f"{here} serves qwen, not gwen"
    assert found[1].detail.startswith("http://127.0.0.1:9/v1: route away: ConnectError")


def test_judges_without_a_server_pass(tmp_path: Path) -> None:
    (tmp_path / "judges.yaml").write_text("judges: [{name: r, kind: rules, dimensions: [progress], votes: [1]}]")
    (found,) = check_judges(Connection("http://x", tmp_path, 1, {"ZELDA_JUDGES_FILE": str(tmp_path / "judges.yaml")}))
    assert found.ok
