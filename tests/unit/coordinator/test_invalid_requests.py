"""Invalid requests, and the one sentence that each gets."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from services.coordinator.api.limits import BodySizeLimit
from shared.contracts.base import sha256
from shared.contracts.ids import Digest, RunId
from shared.contracts.run import RunConfig
from shared.store.memory import MemoryStore
from shared.store.port import AlreadyExists
from tests.unit.coordinator.api_client import client
from tests.unit.coordinator.harness import SHORT_RUN, Harness

CASES: list[tuple[str, str, Any, int, str]] = [
    (
        "POST",
        "/runs",
        {"config": {"epoch_step": 9}},
        422,
        "config.epoch_step: no such field; did you mean epoch_steps?",
    ),
    ("POST", "/runs", {"name": "x"}, 422, "name: no such field; choose from config, run."),
    (
        "POST",
        "/runs",
        {"run": "Bad Name"},
        422,
        "run: 'Bad Name' is not the name of a run: use 1-40 lower-case letters, digits or inner hyphens.",
    ),
    (
        "POST",
        "/runs",
        {"run": "../../etc"},
        422,
        "run: '../../etc' is not the name of a run: use 1-40 lower-case letters, digits or inner hyphens.",
    ),
    ("POST", "/runs", {"config": {"epochs": 0}}, 422, "config.epochs: input should be greater than or equal to 1."),
    (
        "POST",
        "/runs",
        {"config": {"epochs": "many"}},
        422,
        "config.epochs: input should be a valid integer, unable to parse string as an integer.",
    ),
    (
        "POST",
        "/runs",
        {"config": {"batch_size": 8000, "epoch_steps": 4000}},
        422,
        "config: batch_size 8000 is larger than epoch_steps 4000: lower batch_size.",
    ),
    (
        "POST",
        "/runs",
        {"config": {"segment_steps": 500, "episode_length": 400}},
        422,
        "config: segment_steps 500 is larger than episode_length 400: no segment would be complete.",
    ),
    (
        "POST",
        "/runs",
        {"config": {"epoch_steps": 10000, "batch_size": 4000, "env_runners": 8, "envs_per_runner": 8}},
        422,
        "config: epoch_steps 10000 give 187 to each of 64 environments, fewer than segment_steps 300: no segment "
        "would be complete; raise epoch_steps or lower the number of environments.",
    ),
    (
        "POST",
        "/runs",
        {"config": {"game": "tetris"}},
        422,
        "config.game: input should be 'bramble' or 'oracle-of-seasons'.",
    ),
    (
        "POST",
        "/runs",
        {"config": {"world": "wild:x"}},
        422,
        "config.world: choose garden, vale, realm or wild:NUMBER, e.g. wild:7.",
    ),
    (
        "POST",
        "/runs",
        {"config": {"world": "vall"}},
        422,
        "config.world: choose garden, vale, realm or wild:NUMBER, e.g. wild:7; did you mean vale?",
    ),
    (
        "POST",
        "/runs",
        {"config": {"shaping": "none"}},
        422,
        "config.shaping: has fields of its own: shaping.mode, shaping.coefficient, shaping.conservatism.",
    ),
    (
        "POST",
        "/runs",
        {"config": None},
        422,
        "config: has fields of its own: config.game, config.world, config.difficulty, config.seed, config.epochs, "
        "config.run_hours, config.epoch_steps, config.episode_length, config.terminal_on_death, config.segment_steps "
        f"and {len(RunConfig.model_fields) - 10} more.",
    ),
    ("POST", "/runs", {"config": {"epochs": True}}, 422, "config.epochs: true is not a number."),
    ("POST", "/runs", {"config": {"ppo": {"clip": False}}}, 422, "config.ppo.clip: false is not a number."),
    (
        "POST",
        "/runs",
        {"config": {"shaping": {"mode": "gian"}}},
        422,
        "config.shaping.mode: input should be 'gain', 'potential', 'additive' or 'none'; did you mean gain?",
    ),
    (
        "POST",
        "/runs",
        {"config": {"shaping": {"mode": "magic"}}},
        422,
        "config.shaping.mode: input should be 'gain', 'potential', 'additive' or 'none'.",
    ),
    (
        "POST",
        "/runs",
        {"config": {"sampling": {"share": 1.5}}},
        422,
        "config.sampling.share: input should be less than or equal to 1.",
    ),
    ("POST", "/runs", b"{", 422, "The body: not JSON (Expecting property name enclosed in double quotes)."),
    *(
        ("POST", "/runs", body, 422, "The body is unreadable: send a JSON object in UTF-8.")
        for body in (b"\xff", b"[" * 30_000, b'{"config": {"seed": ' + b"1" * 5_000 + b"}}")
    ),
    (
        "POST",
        "/runs",
        [1, 2],
        422,
        "The body: must be a JSON object, sent with `Content-Type: application/json`.",
    ),
    ("POST", "/runs", b"", 422, "The body: required, but missing."),
    ("POST", "/runs", b"x" * 70_000, 413, "The body is larger than 64 KB: a run needs about 1 KB."),
    ("POST", "/runs", {"run": "demo", "config": SHORT_RUN}, 409, "Run demo already exists: choose another name."),
    ("POST", "/runs/missing/stop", None, 404, "There is no run 'missing': see GET /runs."),
    ("POST", "/runs/demo/stopp", None, 404, "Not Found: see /docs for the available routes."),
    ("DELETE", "/runs", None, 405, "Method Not Allowed: see /docs for the available routes."),
    ("GET", "/runs/missing/epochs", None, 404, "There is no run 'missing': see GET /runs."),
    (
        "GET",
        "/runs/a*b",
        None,
        422,
        "run: 'a*b' is not the name of a run: use 1-40 lower-case letters, digits or inner hyphens.",
    ),
    ("GET", "/runs?limit=0", None, 422, "limit: input should be greater than or equal to 1."),
    ("GET", "/runs?after=missing", None, 404, "There is no run 'missing': see GET /runs."),
    (
        "GET",
        "/runs?after=No%20Run",
        None,
        422,
        "after: 'No Run' is not the name of a run: use 1-40 lower-case letters, digits or inner hyphens.",
    ),
    *(
        (
            "GET",
            f"/runs?after={after}~demo",
            None,
            422,
            "after: it is neither the `next` of a page nor the name of a run.",
        )
        for after in ("", "yesterday", "2026-01-01T00:00:00")
    ),
    (
        "GET",
        "/runs?state=lost",
        None,
        422,
        "state: input should be 'created', 'running', 'stopping', 'stopped', 'finished' or 'failed'.",
    ),
    (
        "GET",
        "/runs/demo/segments?epoch=-1",
        None,
        422,
        "epoch: input should be greater than or equal to 0.",
    ),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "sentence"), CASES)
async def test_an_invalid_request_gets_one_clear_sentence(
    tmp_path: Path, method: str, path: str, body: Any, status: int, sentence: str
) -> None:
    harness = Harness()
    await harness.create_run()
    harness.time += timedelta(seconds=1)
    async with client(harness, tmp_path) as http:
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        response = await http.request(method, path, content=content, headers={"Content-Type": "application/json"})
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, response.json()["detail"]) == (status, sentence)


async def test_a_key_with_another_configuration_is_refused(tmp_path: Path) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        await http.post("/runs", json={"config": SHORT_RUN}, headers={"Idempotency-Key": "k"})
        response = await http.post("/runs", json={"config": SHORT_RUN | {"seed": 1}}, headers={"Idempotency-Key": "k"})
    assert response.status_code == 409
    assert response.json()["detail"].endswith("use a new Idempotency-Key for a new run.")


async def test_an_idempotency_key_is_bound_to_one_run_name(tmp_path: Path) -> None:
    harness = Harness()
    key = {"Idempotency-Key": "k"}
    async with client(harness, tmp_path) as http:
        first = await http.post("/runs", json={"run": "aa", "config": SHORT_RUN}, headers=key)
        again = await http.post("/runs", json={"run": "aa", "config": SHORT_RUN}, headers=key)
        assert (first.status_code, again.status_code, again.json()) == (201, 200, first.json())
        for other in ({"run": "bb", "config": SHORT_RUN}, {"config": SHORT_RUN}):
            response = await http.post("/runs", json=other, headers=key)
            assert response.status_code == 409
            assert response.json()["detail"] == (
                "This Idempotency-Key was used for run aa: use a new Idempotency-Key for a new run."
            )
    assert [record.run for record in await harness.models.runs.all()] == ["aa"]


async def test_a_retry_after_a_crash_between_key_and_run_creates_the_run(
    tmp_path: Path,
) -> None:
    harness = Harness()
    await harness.service._bind(Digest(sha256(b"k")), RunId("aa"), named=True)
    async with client(harness, tmp_path) as http:
        response = await http.post("/runs", json={"run": "aa", "config": SHORT_RUN}, headers={"Idempotency-Key": "k"})
    assert (response.status_code, response.json()["run"]) == (201, "aa")


async def test_a_new_idempotency_key_cannot_take_an_existing_name(tmp_path: Path) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        await http.post("/runs", json={"run": "aa", "config": SHORT_RUN}, headers={"Idempotency-Key": "old"})
        for _ in range(2):
            response = await http.post(
                "/runs", json={"run": "aa", "config": SHORT_RUN}, headers={"Idempotency-Key": "new"}
            )
            assert response.status_code == 409
            assert response.json()["detail"] == "Run aa already exists: choose another name."


class LostResponseStore(MemoryStore):
    """A store that loses its response: it creates the first revision, then says that it already exists."""

    async def create(self, key: str, data: bytes) -> str:
        digest = await super().create(key, data)
        if key.endswith("record/00000000.json"):
            raise AlreadyExists(key)
        return digest


async def test_a_run_starts_although_the_stores_response_was_lost(tmp_path: Path) -> None:
    harness = Harness()
    harness.store = LostResponseStore(clock=lambda: harness.time.timestamp())
    harness.wire()
    async with client(harness, tmp_path) as http:
        response = await http.post("/runs", json={"config": SHORT_RUN})
    assert response.status_code == 201


async def test_an_incomplete_request_starts_nothing() -> None:
    messages: list[Message] = [{"type": "http.request", "body": b'{"run": "half"}', "more_body": True}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        raise AssertionError("no client is connected")

    async def start(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("an incomplete request reached the routes")

    await BodySizeLimit(start)({"type": "http", "method": "POST", "headers": []}, receive, send)
