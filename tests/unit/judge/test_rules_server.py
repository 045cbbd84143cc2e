"""The rules judge speaks the protocol of a model server: choices, seeds, schemas, pictures, usage, errors, faults."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from services.judge.adapters.frames import data_url
from services.judge.config import load_judges
from services.judge.domain.facts.timeline import render
from services.judge.domain.prompts import pair_format, pair_messages, response_format, vote_messages
from services.judge.rules_server.__main__ import main
from services.judge.rules_server.app import create_app
from services.judge.rules_server.scoring import RULES, clip_totals
from services.judge.rules_server.settings import Behaviour, RulesServerSettings, parse_arguments
from shared.contracts.scores import DIMENSIONS
from tests.rules import RulesServer
from tests.unit.judge.segment_factory import facts, picture, walk

Client = Callable[..., httpx.AsyncClient]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    opened: list[httpx.AsyncClient] = []

    def open_client(behaviour: dict[str, Any] | None = None, **settings: Any) -> httpx.AsyncClient:
        app = create_app(RulesServerSettings(behaviour=Behaviour(**(behaviour or {})), **settings))
        opened.append(httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://rules.test"))
        return opened[-1]

    yield open_client
    for one in opened:
        await one.aclose()


def body(changes: dict[int, dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
    messages = vote_messages(DIMENSIONS, render(facts(changes), 9_000), "")
    form = response_format(DIMENSIONS)
    return {
        "model": "rules",
        "messages": messages,
        "n": 3,
        "seed": 7,
        "temperature": 0.7,
        "response_format": form,
    } | fields


async def post(one: httpx.AsyncClient, sent: dict[str, Any]) -> dict[str, Any]:
    answer = await one.post("/v1/chat/completions", json=sent)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def votes(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [json.loads(choice["message"]["content"]) for choice in answer["choices"]]


async def test_noise_makes_choices_differ_and_the_seed_repeats_them(client: Client) -> None:
    exact, noisy = client(), client({"vote_noise": 2.0})
    assert len({json.dumps(vote) for vote in votes(await post(exact, body(walk(4))))}) == 1
    first = votes(await post(noisy, body(walk(4), n=8)))
    assert len({json.dumps(vote) for vote in first}) > 2
    assert votes(await post(noisy, body(walk(4), n=8))) == first
    assert votes(await post(noisy, body(walk(4), n=8, seed=9))) != first
    shifted = votes(await post(noisy, body(walk(4), n=7, seed=8)))
    assert shifted == first[1:], "choice i has the seed of the request plus i"
    assert len({json.dumps(vote) for vote in votes(await post(noisy, body(walk(4), temperature=0)))}) == 1


async def test_better_play_gets_better_votes(client: Client) -> None:
    one = client()
    idle = votes(await post(one, body()))[0]
    busy = votes(await post(one, body({**walk(6), 30: {"treasures": ["sword"]}, 60: {"essences": 1}})))[0]
    assert all(idle[name] <= busy[name] for name in ("progress", "novelty", "efficiency"))
    assert (idle["progress"], busy["progress"]) == (0, 5)


@pytest.mark.parametrize("name", DIMENSIONS)
def test_every_dimension_has_a_rule_within_its_scale(name: str) -> None:
    for changes in ({}, walk(2), walk(9), {5: {"deaths": 1}}, {5: {"events": ["solved"] * 9, "essences": 3}}):
        assert 0 <= RULES[name](clip_totals(render(facts(changes), 9_000))) <= 5


def test_walking_in_known_rooms_is_neither_progress_nor_novelty() -> None:
    new = walk(6)
    known = {step: {**change, "rooms_visited": 6} for step, change in new.items()}
    explored, wandered = (clip_totals(render(facts(changes), 9_000)) for changes in (new, known))
    assert (RULES["progress"](explored), RULES["progress"](wandered)) == (2, 0)
    assert RULES["novelty"](explored) > RULES["novelty"](wandered) == 1


async def test_usage_counts_the_prompt_once_with_its_cached_prefix(client: Client) -> None:
    one = client()
    first = (await post(one, body(walk(2))))["usage"]
    second = (await post(one, body(walk(7))))["usage"]
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    assert 0 < second["prompt_tokens_details"]["cached_tokens"] < second["prompt_tokens"]
    single = (await post(one, body(walk(7), n=1)))["usage"]
    assert single["prompt_tokens"] == second["prompt_tokens"]
    assert single["completion_tokens"] * 3 == second["completion_tokens"]


async def test_pictures_are_accepted_as_data_and_never_fetched(client: Client) -> None:
    one = client()
    text = render(facts(walk(3)), 9_000)
    sent = body(messages=vote_messages(DIMENSIONS, text, "", [data_url(picture(1), 3)] * 8))
    assert (await post(one, sent))["usage"]["prompt_tokens"] > 8 * 200
    for url in (
        "http://127.0.0.1:1/x.png",
        "file:///etc/passwd",
        "data:image/png;base64,@@",
        "data:image/png;base64,aGVsbG8=",
    ):
        wrong = body(messages=vote_messages(DIMENSIONS, text, "", [url]))
        assert (await one.post("/v1/chat/completions", json=wrong)).status_code == 400


async def test_clips_compare_the_same_in_both_orders(client: Client) -> None:
    one = client()
    good, bad = render(facts({**walk(6), 30: {"treasures": ["sword"]}}), 9_000), render(facts(), 9_000)
    for first, second, better in ((good, bad, "A"), (bad, good, "B"), (bad, bad, "equal")):
        sent = body(messages=pair_messages(DIMENSIONS, first, second), response_format=pair_format(), n=1)
        assert votes(await post(one, sent))[0]["better"] == better


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": "gpt-9"}, "unknown model 'gpt-9'"),
        ({"messages": []}, "a list of messages"),
        ({"messages": [{"role": "user"}]}, "every message needs a content"),
        ({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, "a text or an image_url"),
        ({"n": 0}, "n must be 1 to 32"),
        ({"n": "three"}, "n must be a whole number"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"response_format": {"type": "xml"}}, "type text or json_schema"),
        ({"response_format": {"type": "json_schema"}}, "json_schema.schema is missing"),
        ({"response_format": response_format(("progress",)) | {"json_schema": {"schema": {}}}}, "needs properties"),
    ],
)
async def test_invalid_request_is_a_400_with_one_sentence(client: Client, change: dict[str, Any], says: str) -> None:
    answer = await client().post("/v1/chat/completions", json=body() | change)
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]


async def test_prompt_beyond_the_context_is_refused(client: Client) -> None:
    answer = await client(context_tokens=500).post("/v1/chat/completions", json=body())
    assert answer.status_code == 400
    assert "the limit is 500" in answer.json()["error"]["message"]


async def test_simulated_errors_carry_retry_after(client: Client) -> None:
    one = client({"error_rate": 1.0, "error_status": 429, "retry_after": 3})
    answer = await one.post("/v1/chat/completions", json=body())
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
    mixed = client({"error_rate": 0.5}, seed=1)
    codes = [(await mixed.post("/v1/chat/completions", json=body())).status_code for _ in range(60)]
    assert 15 <= codes.count(500) <= 45


async def test_request_with_a_free_slot_is_served_without_a_queue(client: Client) -> None:
    one = client({"max_concurrent": 1, "max_waiting": 0, "latency_ms": 100})
    answers = await asyncio.gather(*(one.post("/v1/chat/completions", json=body()) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [200, 429, 429]


async def test_models_health_and_metrics_answer(client: Client) -> None:
    one = client()
    await post(one, body())
    models = (await one.get("/v1/models")).json()["data"]
    wanted = {judge.model for judge in load_judges(None, "http://rules.test/v1").judges}
    assert wanted <= {model["id"] for model in models}
    assert all(model["max_model_len"] == 32_768 for model in models)
    assert (await one.get("/health")).status_code == 200
    assert 'rules_choices_total{model="rules"} 3.0' in (await one.get("/metrics")).text


async def test_behaviour_changes_only_with_the_control_option(client: Client) -> None:
    assert (await client().put("/behaviour", json={"vote_noise": 1})).status_code == 403
    one = client(control=True)
    assert (await one.put("/behaviour", json={"vote_noise": 1})).json()["vote_noise"] == 1
    assert (await one.put("/behaviour", json={"vote_nose": 1})).status_code == 400
    assert (await one.put("/behaviour", content=b"[]")).status_code == 400


def test_command_line_sets_every_option() -> None:
    words = ["--port", "0", "--seed", "3", "--model", "a", "--model", "b", "--vote-noise", "0.5"]
    words += ["--ignore-n", "--latency-ms", "20", "--control"]
    settings = parse_arguments(words)
    assert (settings.port, settings.seed, settings.models, settings.control) == (0, 3, ("a", "b"), True)
    assert (settings.behaviour.vote_noise, settings.behaviour.ignore_n) == (0.5, True)
    assert settings.behaviour.latency_ms == 20


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs a machine with IPv6")
def test_it_serves_both_families_on_all_addresses() -> None:
    with RulesServer("--host", "::") as server:
        for host in ("127.0.0.1", "[::1]"):
            assert httpx.get(f"http://{host}:{server.port}/health").status_code == 200


def test_a_port_in_use_ends_it_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["rules_server", "--port", str(port)])
        assert main() == 1
    assert capsys.readouterr().err.startswith(f"rules judge: 127.0.0.1 port {port}: ")
