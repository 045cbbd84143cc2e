"""The outage matrix of a route: total timeout, bounded attempts, breaker, Retry-After, no effect on other routes."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import httpx
import pytest

from services.judge.config import load_judges
from services.judge.rules_server.app import create_app
from services.judge.rules_server.settings import Behaviour, RulesServerSettings
from services.judge.runtime import JudgeRuntime
from services.judge.settings import JudgeGroup
from services.judge.telemetry import ROUTES
from shared.contracts.ids import SegmentId
from shared.contracts.scores import SegmentScores
from shared.errors import Transient
from shared.llm.port import Completion, CompletionRequest, RequestRefused, RouteUnavailable
from shared.llm.route import RouteClient
from shared.llm.route_spec import RouteSpec
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.judge.bad_servers import (
    GOOD,
    Reply,
    always,
    drip,
    endless,
    hang_up,
    in_turn,
    refusing_url,
    response,
    serving,
    silence,
)
from tests.unit.judge.segment_factory import RUN, archive, recorded, walk
from tests.unit.shared.loop import until_equal

TOTAL_S = 2.0
SLOTS = 8


class Connect(Protocol):
    """Makes a client of one address; fields of its RouteSpec replace those of this file."""

    def __call__(self, name: str, url: str, *, use_direct: bool = False, **fields: object) -> RouteClient: ...


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    opened = []

    def route(name: str, url: str, *, use_direct: bool = False, **fields: object) -> RouteClient:
        values = {"url": url, "total_timeout_s": TOTAL_S, "wait_s": 2.0, **fields}
        opened.append(RouteClient(name, RouteSpec.model_validate(values), ROUTES, use_direct=use_direct))
        return opened[-1]

    yield route
    for one in opened:
        await one.close()


async def ask(route: RouteClient, seed: int = 0) -> Completion:
    return await route.complete(CompletionRequest({"model": "m", "messages": []}, 3, seed, RUN))


@contextmanager
def unreachable() -> Iterator[str]:
    """An address whose connections are never accepted: a listener with a full queue."""
    with socket.socket() as listener, socket.socket() as filler:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        filler.setblocking(False)
        more = [filler, *(socket.socket() for _ in range(8))]
        for one in more:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        for one in more:
            one.close()


@pytest.mark.parametrize(
    ("reply", "attempts", "within"),
    [
        (silence, 1, TOTAL_S + 1),
        (drip, 1, TOTAL_S + 1),
        (endless, 2, TOTAL_S + 1),
        (hang_up, 2, TOTAL_S + 1),
        (always(500, b"oops"), 2, TOTAL_S + 1),
        (always(502, b"<html>"), 2, TOTAL_S + 1),
        (always(503, b"inference error: ServiceUnavailable"), 2, TOTAL_S + 1),
        (always(429, b"slow down"), 2, TOTAL_S + 1),
        (always(429, b"", retry_after="60"), 1, 0.5),
        (always(200, b"not json"), 2, TOTAL_S + 1),
        (always(200, b'{"choices": 3}'), 2, TOTAL_S + 1),
        (always(401, b'{"error": {"message": "no"}}'), 1, 0.5),
        (always(404, b'{"error": {"message": "no model"}}'), 1, 0.5),
        (always(307, b"", location="http://127.0.0.1:1/v1/chat/completions"), 1, 0.5),
    ],
)
async def test_every_outage_ends_in_time_with_at_most_two_attempts(
    connect: Connect, reply: Reply, attempts: int, within: float
) -> None:
    async with serving(reply) as server:
        route = connect("bad", server.url)
        begun = time.monotonic()
        with pytest.raises(RouteUnavailable):
            await ask(route)
        assert time.monotonic() - begun < within
        assert server.requests == attempts


async def test_refused_and_unreachable_addresses_end_in_time(connect: Connect) -> None:
    with unreachable() as hole:
        for url in (refusing_url(), hole):
            route = connect("bad", url, connect_timeout_s=0.5)
            begun = time.monotonic()
            with pytest.raises(RouteUnavailable):
                await ask(route)
            assert time.monotonic() - begun < TOTAL_S + 1


async def test_second_attempt_succeeds_after_one_error(connect: Connect) -> None:
    async with serving(in_turn(always(500, b""), always(200))) as server:
        route = connect("shaky", server.url)
        answer = await ask(route)
        assert len(answer.choices) == 3
        assert server.requests == 2


async def test_retry_after_holds_for_this_call_and_all_others_of_the_route(connect: Connect) -> None:
    async with serving(in_turn(always(429, b"", retry_after="1"), always(200))) as server:
        route = connect("busy", server.url, total_timeout_s=5)
        begun = time.monotonic()
        first = asyncio.create_task(ask(route))
        await asyncio.sleep(0.2)
        await asyncio.gather(first, ask(route, 1), ask(route, 2))
        assert time.monotonic() - begun >= 1.0
        assert server.requests == 4


async def test_refused_request_is_not_repeated(connect: Connect) -> None:
    body = b'{"error": {"message": "maximum context length is 4096 tokens"}}'
    async with serving(always(400, body)) as server:
        route = connect("strict", server.url)
        with pytest.raises(RequestRefused, match="maximum context length"):
            await ask(route)
        assert server.requests == 1


async def test_breaker_opens_after_ten_failures_and_closes_after_one_success(connect: Connect) -> None:
    async with serving(always(500, b"")) as server:
        route = connect("down", server.url, breaker_open_s=1)
        for _ in range(5):
            with pytest.raises(RouteUnavailable):
                await ask(route)
        assert server.requests == 10
        begun = time.monotonic()
        with pytest.raises(RouteUnavailable, match="breaker open after 10 failures"):
            await ask(route)
        assert time.monotonic() - begun < 0.1
        assert server.requests == 10
        await asyncio.sleep(1.1)
        with pytest.raises(RouteUnavailable):
            await ask(route)
        assert server.requests == 11, "half-open lets one request through, and it failed"
        server.reply = always(200)
        await asyncio.sleep(1.1)
        await ask(route)
        await asyncio.gather(*(ask(route, seed) for seed in range(5)))
        assert route.breaker.state(time.monotonic()) == "closed"


async def test_calls_in_flight_never_exceed_the_limit(connect: Connect) -> None:
    now = most = 0

    async def count(server: object, writer: asyncio.StreamWriter) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        writer.write(response(200, GOOD))

    async with serving(count) as server:
        route = connect("small", server.url, max_concurrent=4, wait_s=20, total_timeout_s=20)
        await asyncio.gather(*(ask(route, seed) for seed in range(60)))
        assert most == 4


async def test_busy_route_is_waited_for_while_it_answers(connect: Connect) -> None:
    async def slowly(server: object, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.15)
        writer.write(response(200, GOOD))

    async with serving(slowly) as server:
        route = connect("slow", server.url, max_concurrent=1, wait_s=0.4)
        begun = time.monotonic()
        await asyncio.gather(*(ask(route, seed) for seed in range(10)))
        assert time.monotonic() - begun > 1.4, "the last one queued for longer than wait_s"
        server.reply = silence
        queued = asyncio.create_task(ask(route))
        await asyncio.sleep(0.1)
        with pytest.raises(RouteUnavailable, match=r"no free slot within 0.4 s"):
            await ask(route)
        with pytest.raises(RouteUnavailable, match="no answer within 2 s"):
            await queued


async def test_token_is_read_again_and_headers_have_both_spellings(connect: Connect, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    seen: list[httpx.Headers] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return httpx.Response(200, content=GOOD)

    route = connect("gateway", "http://gateway.test/v1", token_file=str(token), objective="judges")
    route.clients.transport = httpx.MockTransport(answer)
    await ask(route)
    token.write_text("second\n")
    await ask(route)
    assert [headers["authorization"] for headers in seen] == ["Bearer first", "Bearer second"]
    for name, value in (("objective", "judges"), ("fairness-id", RUN)):
        assert seen[0][f"x-llm-d-inference-{name}"] == seen[0][f"x-gateway-inference-{name}"] == value
    token.unlink()
    with pytest.raises(RouteUnavailable, match="token file"):
        await ask(route)


async def test_route_uses_direct_url_if_configured(connect: Connect) -> None:
    urls: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        urls.append(str(request.url))
        return httpx.Response(200, content=GOOD)

    for use_direct in (False, True):
        route = connect("r", "https://gateway.test/ns/m/v1", use_direct=use_direct, direct_url="https://m.test:8000/v1")
        route.clients.transport = httpx.MockTransport(answer)
        await ask(route)
    assert urls == ["https://gateway.test/ns/m/v1/chat/completions", "https://m.test:8000/v1/chat/completions"]


async def test_server_failing_half_of_the_time_loses_and_doubles_nothing() -> None:
    store, app = MemoryStore(), create_app(RulesServerSettings(behaviour=Behaviour(error_rate=0.5), seed=5))
    runtime = JudgeRuntime(store, load_judges(None, "http://rules.test/v1"), JudgeGroup(cache_size=0), monitoring=False)
    for route in runtime.routes.values():
        route.clients.transport = httpx.ASGITransport(app)
    events = [
        await recorded(store, archive(f"s{i}", {**walk(1 + i % 5), 3: {"rupees": i}}), f"s{i}") for i in range(12)
    ]
    left, ids = list(events), dict[str, str]()
    for _ in range(60):
        for event in list(left):
            try:
                (ready,) = await runtime.handlers.segment_ready(event)
            except Transient:
                continue
            left.remove(event)
            ids[event.id] = ready.id
        for route in runtime.routes.values():
            route.breaker.record_success()  # half an hour of waiting in no time
        if not left:
            break
    assert not left
    assert len(set(ids.values())) == 12
    for number in range(12):
        scores = SegmentScores.from_bytes(await store.get(keys.score(RUN, 0, SegmentId(f"s{number}"))))
        assert scores.status == "judged"
        assert all(len(score.votes) == 3 for result in scores.judges for score in result.dimensions.values())
    await runtime.close()


async def test_dead_route_does_not_slow_the_others(connect: Connect) -> None:
    together = asyncio.Barrier(SLOTS)

    async def once_all_slots_are_in_use(server: object, writer: asyncio.StreamWriter) -> None:
        await together.wait()
        writer.write(response(200))

    async with serving(once_all_slots_are_in_use) as good, serving(silence) as bad:
        healthy, dead = (
            connect(name, server.url, max_concurrent=SLOTS, total_timeout_s=60, wait_s=60)
            for name, server in (("healthy", good), ("dead", bad))
        )
        unanswered = [asyncio.create_task(ask(dead, seed)) for seed in range(20)]
        await until_equal(lambda: bad.requests, SLOTS)
        await asyncio.gather(*(ask(healthy, seed) for seed in range(5 * SLOTS)))
        assert (dead.in_flight, dead.queued) == (SLOTS, 20 - SLOTS), "the dead route is as busy as before"
        assert (healthy.in_flight, healthy.queued) == (0, 0)
        for one in unanswered:
            one.cancel()
        await asyncio.gather(*unanswered, return_exceptions=True)
