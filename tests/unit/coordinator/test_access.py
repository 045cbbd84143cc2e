"""Deny by default: every documented route without a token and with an unknown, a viewer's and an operator's token."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.coordinator.live.broadcaster import Poll
from shared.contracts.ids import RunId
from shared.runtime.health import METHODS
from tests.unit.coordinator.api_client import OPERATOR, VIEWER, client
from tests.unit.coordinator.harness import RUN, SHORT_RUN, Harness, started_run


async def routes(harness: Harness, directory: Path) -> list[tuple[str, str]]:
    """Method and path of every documented route, with the run's name filled in."""
    async with client(harness, directory) as http:
        document: dict[str, Any] = (await http.get("/openapi.json")).json()
    names = {"run": "demo", "epoch": "0", "episode": "e0", "segment": "e0-s0", "number": "0", "prompt": "0" * 64}
    return [(method.upper(), path.format(**names)) for path, item in document["paths"].items() for method in item]


@pytest.mark.parametrize("token", [None, "a-token-that-is-unknown"])
async def test_a_missing_or_unknown_token_is_refused(tmp_path: Path, token: str | None) -> None:
    harness = Harness()
    found = await routes(harness, tmp_path)
    assert len(found) == 25
    async with client(harness, tmp_path, token) as http:
        for method, path in found:
            response = await http.request(method, path)
            assert response.status_code == 401, f"{method} {path}"
            assert response.headers["www-authenticate"] == "Bearer"


async def test_a_viewer_can_read_all_but_logs_and_change_nothing(tmp_path: Path) -> None:
    harness = Harness()
    await harness.create_run()
    async with client(harness, tmp_path, VIEWER) as http:
        for method, path in await routes(harness, tmp_path):
            if path.endswith("/events"):
                continue  # endless, but behind the same middleware
            response = await http.request(method, path)
            # The run has neither segments nor epochs; a potential that was not drawn is empty.
            absent = ("/segments/" in path and not path.endswith("/potential")) or path.endswith("/report")
            absent = absent or "/replies/" in path
            refused = method != "GET" or path.endswith("/logs")
            assert response.status_code == (403 if refused else 404 if absent else 200), f"{method} {path}"


async def test_an_operator_can_do_everything(tmp_path: Path) -> None:
    harness = Harness()
    await harness.create_run()
    async with client(harness, tmp_path, OPERATOR) as http:
        assert (await http.post("/runs", json={"config": SHORT_RUN})).status_code == 201
        assert (await http.post("/runs/demo/stop")).status_code == 202
        assert (await http.post("/runs/demo/resume")).status_code == 202


@pytest.mark.parametrize("path", ["/nowhere", "/runs/demo/secret", "/page/page.js/", "/metrics/../runs"])
async def test_unknown_paths_need_a_token(tmp_path: Path, path: str) -> None:
    async with client(Harness(), tmp_path, token=None) as http:
        assert (await http.get(path)).status_code == 401


async def test_proxy_headers_do_not_authenticate(tmp_path: Path) -> None:
    async with client(Harness(), tmp_path, token=None) as http:
        response = await http.get("/runs", headers={"X-Forwarded-User": "admin", "X-Remote-User": "admin"})
    assert response.status_code == 401


async def test_token_rotation_takes_effect_immediately(tmp_path: Path) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        assert (await http.get("/runs")).status_code == 200
        (tmp_path / "tokens").write_text("operator:another-token-0123456789abc\n")
        assert (await http.get("/runs")).status_code == 401


@pytest.mark.parametrize("text", ["operator:another-token-0123456789abc\n", ""])
async def test_a_stream_ends_when_its_token_is_revoked(tmp_path: Path, text: str) -> None:
    harness = await started_run()
    polled, poller = asyncio.Event(), harness.broadcaster._poller

    def observed(run: RunId) -> Poll:
        polled.set()
        return poller(run)

    harness.broadcaster._poller = observed
    async with client(harness, tmp_path, VIEWER) as http:
        watching = asyncio.create_task(http.get("/runs/demo/events"))
        await polled.wait()  # the stream is open
        (tmp_path / "tokens").write_text(text)
        await harness.service.stop(RUN)
        response = await asyncio.wait_for(watching, 10)
    assert response.status_code == 200
    assert "stopping" not in response.text
    assert harness.broadcaster._channels == {}


INVALID_FILES = ["", "operator:short", f"viewer:{VIEWER}\nadmin:{OPERATOR}", None]


@pytest.mark.parametrize("text", INVALID_FILES)
async def test_an_invalid_token_file_refuses_every_request_with_503(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "tokens"
    async with client(Harness(), tmp_path, VIEWER) as http:
        good = path.read_text()
        assert (await http.get("/runs")).status_code == 200
        with capture_logs() as logs:
            path.unlink() if text is None else path.write_text(text)
            responses = [await http.get("/runs") for _ in range(3)]
        path.write_text(good)
        assert (await http.get("/runs")).status_code == 200, "repaired"
    for response in responses:
        assert (response.status_code, response.headers["content-type"]) == (503, "application/problem+json")
        assert response.json()["detail"].startswith("The coordinator cannot use its token file: its operator")
    (line,) = logs
    assert line["path"] == str(path)
    assert OPERATOR not in str(line)


def bearer(token: str) -> dict[str, str]:
    """The header of a request with this token."""
    return {"Authorization": f"Bearer {token}"}


async def test_too_many_requests_of_a_token_get_429(tmp_path: Path) -> None:
    async with client(Harness(), tmp_path, burst=5, per_s=0.001) as http:
        responses = [await http.get("/runs") for _ in range(6)]
        assert (await http.get("/runs", headers=bearer(VIEWER))).status_code == 200, "another token has its own limit"
    assert [response.status_code for response in responses] == [200] * 5 + [429]
    assert responses[-1].headers["retry-after"] == "1"
    assert responses[-1].json()["detail"] == "This token sends more than 0.001 requests per second: wait a second."


@pytest.mark.parametrize(
    ("method", "path", "token", "status"),
    [
        ("GET", "/runs", None, 401),
        ("GET", "/runs", "a-token-that-is-unknown", 401),
        ("POST", "/runs", VIEWER, 403),
        ("GET", "/", None, 200),
    ],
)
async def test_strangers_cannot_use_up_what_tokens_may_send(
    tmp_path: Path, method: str, path: str, token: str | None, status: int
) -> None:
    async with client(Harness(), tmp_path, token, burst=3, per_s=0.001) as http:
        responses = [await http.request(method, path) for _ in range(5)]
        assert [response.status_code for response in responses] == [status] * 3 + [429] * 2
        detail = responses[-1].json()["detail"]
        assert detail == "This address sends more than 0.001 requests per second: wait a second."
        for accepted in (VIEWER, OPERATOR):  # from the same address, as behind a router
            assert (await http.get("/runs", headers=bearer(accepted))).status_code == 200


async def test_an_address_that_a_header_names_has_no_limit_of_its_own(tmp_path: Path) -> None:
    async with client(Harness(), tmp_path, token=None, burst=3, per_s=0.001) as http:
        codes = [
            (await http.get("/runs", headers={"X-Forwarded-For": f"203.0.113.{number}"})).status_code
            for number in range(4)
        ]
    assert codes == [401] * 3 + [429]


async def test_an_unusable_token_file_does_not_lift_the_limit(tmp_path: Path) -> None:
    async with client(Harness(), tmp_path, burst=3, per_s=0.001) as http:
        (tmp_path / "tokens").unlink()
        codes = [(await http.get("/runs")).status_code for _ in range(4)]
    assert codes == [503] * 3 + [429]


@pytest.mark.parametrize("method", sorted(METHODS))
async def test_requests_of_every_method_are_counted(tmp_path: Path, method: str) -> None:
    async with client(Harness(), tmp_path, burst=3, per_s=0.001) as http:
        codes = [(await http.request(method, "/runs")).status_code for _ in range(4)]
        assert codes[-1] == 429
        assert 429 not in codes[:-1]
        assert (await http.get("/runs")).status_code == 429, "all methods share what a token may send"
