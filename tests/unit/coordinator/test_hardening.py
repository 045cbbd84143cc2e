"""The REST interface under load and attack: one owner of a run, bounded waits, answers that reveal nothing."""

import asyncio
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message

from services.coordinator.api.limits import BodySizeLimit
from shared.contracts.ids import RunId
from shared.errors import Transient
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import ObjectEntry
from tests.unit.coordinator.api_client import client
from tests.unit.coordinator.harness import SHORT_RUN, Harness


async def test_of_200_racing_requests_for_one_name_one_owns_the_run(tmp_path: Path) -> None:
    harness = Harness()
    body = {"run": "mine", "config": SHORT_RUN}
    async with client(harness, tmp_path) as http:
        responses = await asyncio.gather(
            *(http.post("/runs", json=body, headers={"Idempotency-Key": f"key-{number}"}) for number in range(200))
        )
        codes = [response.status_code for response in responses]
        assert sorted(codes) == [201] + [409] * 199
        owner, loser = codes.index(201), codes.index(409)
        again = await http.post("/runs", json=body, headers={"Idempotency-Key": f"key-{owner}"})
        assert again.status_code == 200
        other = {"run": "other", "config": SHORT_RUN}
        freed = await http.post("/runs", json=other, headers={"Idempotency-Key": f"key-{loser}"})
        assert freed.status_code == 201  # the key of a refused request is still free


async def test_the_key_of_a_run_from_before_owners_still_answers_200(tmp_path: Path) -> None:
    harness = Harness()
    body, key = {"run": "mine", "config": SHORT_RUN}, {"Idempotency-Key": "k1"}
    async with client(harness, tmp_path) as http:
        assert (await http.post("/runs", json=body, headers=key)).status_code == 201
        stored = await harness.models.runs.revision(RunId("mine"), 0)
        earlier = stored.model_copy(update={"request": None}).to_bytes()
        await harness.store.put(keys.run_revision(RunId("mine"), 0), earlier)
        assert (await http.post("/runs", json=body, headers=key)).status_code == 200
        assert (await http.post("/runs", json=body, headers={"Idempotency-Key": "k2"})).status_code == 409


async def test_options_names_every_method_of_a_path(tmp_path: Path) -> None:
    async with client(Harness(), tmp_path) as http:
        response = await http.request("OPTIONS", "/runs")
        assert response.status_code == 405
        assert set(response.headers["allow"].split(", ")) == {"GET", "POST"}


@pytest.mark.parametrize("path", ["/runs/", "/docs/", "/runs/demo/"])
async def test_a_path_with_a_slash_too_many_redirects_nowhere(tmp_path: Path, path: str) -> None:
    async with client(Harness(), tmp_path) as http:
        response = await http.get(path, headers={"X-Forwarded-Proto": "https"})
    assert response.status_code == 404  # a redirect names http:// behind a router with TLS, and shows it the token
    assert response.headers["content-type"] == "application/problem+json"


async def test_pages_and_answers_carry_headers_against_misuse(tmp_path: Path) -> None:
    async with client(Harness(), tmp_path) as http:
        for path in ("/", "/runs", "/nothing"):
            response = await http.get(path)
            assert response.headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in response.headers["content-security-policy"]


async def test_an_outage_shows_no_internal_address(tmp_path: Path) -> None:
    class AwayStore(MemoryStore):
        async def list(self, prefix: str) -> list[ObjectEntry]:
            raise Transient("store http://10.1.2.3:8333 not reached: connection refused")

    harness = Harness(AwayStore)
    async with client(harness, tmp_path) as http:
        response = await http.get("/runs")
    assert response.status_code == 503
    assert "10.1.2.3" not in response.text
    assert "retry" in response.json()["detail"]


@pytest.mark.parametrize("seed", [True, "7", 7.5])
async def test_a_seed_is_a_whole_number_and_nothing_like_it(tmp_path: Path, seed: object) -> None:
    async with client(Harness(), tmp_path) as http:
        response = await http.post("/runs", json={"config": SHORT_RUN | {"seed": seed}})
    assert response.status_code == 422
    assert response.json()["detail"].startswith("config.seed: ")


async def test_a_body_that_never_ends_is_refused() -> None:
    sent: list[Message] = []

    async def endless() -> Message:
        return await asyncio.Future()

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/runs", "headers": []}
    await BodySizeLimit(PlainTextResponse("never"), seconds=0.05)(scope, endless, send)
    assert sent[0]["status"] == 408
