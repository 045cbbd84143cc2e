"""The chart's two scripts (credentials, test epoch) against real HTTP servers."""

import base64
import json
import runpy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from shared.bus.topology import ROLES
from tests.helm.pods import generated_secrets, literal
from tests.helm.rendering import CHART, containers, named, profile, render

MAKE, PLAY = CHART / "files/make_secrets.py", CHART / "files/test_epoch.py"
Seen = list[tuple[str, str, dict[str, Any]]]
DROPPED = 0  # in place of a status: the connection ends without an answer


@contextmanager
def server(answers: list[tuple[int, dict[str, Any]]]) -> Iterator[tuple[str, Seen, list[str]]]:
    """(address, requests, bearer tokens) of a server with these responses in turn; the last one repeats."""
    seen: Seen = []
    tokens: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append((self.command, self.path, json.loads(body) if body else {}))
            tokens.append(self.headers["Authorization"].removeprefix("Bearer "))
            status, reply = answers[min(len(seen), len(answers)) - 1]
            if status == DROPPED:
                return
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(reply).encode())

        do_GET = do_POST = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}", seen, tokens
        http.shutdown()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("a-token\n")
    return path


def run(script: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> int:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return int(runpy.run_path(str(script))["main"]())


def secrets_environment(api: str, token: Path) -> dict[str, str]:
    job = named(render(profile("dev")), "Job", "zelda-secrets")
    return {**literal(containers(job["spec"]["template"])[0]), "KUBERNETES_API": api, "TOKEN_FILE": str(token)}


def test_credentials_are_created_once_and_never_printed(
    token: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with server([(201, {})]) as (api, seen, tokens):
        assert run(MAKE, secrets_environment(api, token), monkeypatch) == 0
    assert {path for _, path, _ in seen} == {"/api/v1/namespaces/zelda-rl/secrets"}
    assert set(tokens) == {"a-token"}
    made = {body["metadata"]["name"]: body["data"] for _, _, body in seen}
    assert set(made) == {"zelda-bus", "zelda-store", "zelda-api"}
    printed = capsys.readouterr().out
    for entries in made.values():
        for value in entries.values():
            assert base64.b64decode(value).decode().strip() not in printed


def test_existing_credentials_are_kept(
    token: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with server([(409, {})]) as (api, seen, _):
        assert run(MAKE, secrets_environment(api, token), monkeypatch) == 0
    assert {method for method, _, _ in seen} == {"POST"}
    assert capsys.readouterr().out.count("exists, left alone") == 3


def test_a_refusal_fails_the_job(
    token: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with server([(403, {})]) as (api, _, _):
        assert run(MAKE, secrets_environment(api, token), monkeypatch) == 1
    assert "refused with status 403" in capsys.readouterr().out


def test_every_bus_user_gets_different_credentials() -> None:
    made = generated_secrets(render(profile("dev")))["zelda-bus"]
    users = {name.removesuffix(".credentials") for name in made if name.endswith(".credentials")}
    assert users == {*ROLES, "provision", "cluster"}
    assert len({made[f"{user}.password"] for user in users}) == len(users)
    assert all(made[f"{user}.credentials"] == f"{user}:{made[f'{user}.password']}" for user in users)


def test_the_helm_test_follows_its_epoch_to_the_end(
    token: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = [{"record": {"state": state, "epoch": 0}} for state in ("running", "running", "finished")]
    with server([(201, {}), *((200, state) for state in states)]) as (api, seen, tokens):
        assert run(PLAY, epoch_environment(api, token), monkeypatch) == 0
    assert [method for method, _, _ in seen] == ["POST", "GET", "GET", "GET"]
    assert seen[0][2]["config"]["epochs"] == 1
    assert set(tokens) == {"a-token"}
    assert "a-token" not in capsys.readouterr().out


def test_the_helm_test_waits_for_a_replaced_coordinator(
    token: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = {"record": {"state": "finished", "epoch": 0}}
    with server([(201, {}), (DROPPED, {}), (503, {}), (200, ended)]) as (api, seen, _):
        assert run(PLAY, epoch_environment(api, token), monkeypatch) == 0
    assert len(seen) == 4
    assert capsys.readouterr().out.count("trying again") == 2


def test_a_failed_epoch_fails_the_test(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with server([(201, {}), (200, {"record": {"state": "failed", "epoch": 0}})]) as (api, _, _):
        assert run(PLAY, epoch_environment(api, token), monkeypatch) == 1


def test_a_refused_run_fails_the_test(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with server([(403, {})]) as (api, seen, _):
        assert run(PLAY, epoch_environment(api, token), monkeypatch) == 1
    assert len(seen) == 1


def epoch_environment(api: str, token: Path) -> dict[str, str]:
    return {"API": api, "TOKEN_FILE": str(token), "STEPS": "2000", "TIMEOUT_SECONDS": "20", "POLL_SECONDS": "0.01"}
