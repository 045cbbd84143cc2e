"""A route asks a struggling server for less, tries it again soon, and knows what each of its answers means."""

import asyncio
import json
import time
from collections.abc import Callable

import httpx
import pytest

from services.judge.telemetry import ROUTES
from shared.llm.client_pool import ClientPool
from shared.llm.port import CompletionRequest, RouteUnavailable
from shared.llm.route import RouteClient
from shared.llm.route_spec import RouteSpec

REQUEST = CompletionRequest({"messages": []}, 3, 1, "demo")
OPEN_S = 5.0


def answer(request: httpx.Request) -> httpx.Response:
    choice = {"message": {"content": "a vote"}, "finish_reason": "stop"}
    return httpx.Response(200, json={"choices": [choice] * json.loads(request.content)["n"]})


async def hang(request: httpx.Request) -> httpx.Response:
    await asyncio.Event().wait()
    raise AssertionError


class Server:
    """A server that answers each request as `handler` says at that moment, and notes what it was asked."""

    def __init__(self, handler: Callable[[httpx.Request], object] = answer) -> None:
        self.handler, self.asked = handler, list[httpx.Request]()

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        found = self.handler(request)
        response = await found if asyncio.iscoroutine(found) else found
        assert isinstance(response, httpx.Response)
        return response


def route(server: Server, **fields: float) -> RouteClient:
    given = {"url": "http://server.test/v1", "attempts": 1, "breaker_failures": 1, "breaker_open_s": OPEN_S, **fields}
    opened = RouteClient("r", RouteSpec.model_validate(given), ROUTES)
    opened.clients.transport = httpx.MockTransport(server)
    return opened


def half_open(server: Server) -> RouteClient:
    """A route whose server has failed, and may be tried again now."""
    one = route(server)
    one.breaker.record_failure(time.monotonic() - OPEN_S)
    assert one.breaker.state(time.monotonic()) == "half-open"
    return one


async def cancel(call: asyncio.Task[object]) -> None:
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)


async def until_asked(server: Server, times: int = 1) -> None:
    """Let all tasks go on until the server has this many requests, and then until each of them waits."""
    while len(server.asked) < times:  # noqa: ASYNC110 - a request is no event
        await asyncio.sleep(0)
    for _ in range(50):
        await asyncio.sleep(0)


async def started(server: Server, one: RouteClient, calls: int = 1) -> list[asyncio.Task[object]]:
    """Calls of which as many as possible have reached the server."""
    tasks: list[asyncio.Task[object]] = [asyncio.create_task(one.complete(REQUEST)) for _ in range(calls)]
    await until_asked(server)
    return tasks


async def test_a_request_names_the_number_of_choices_and_the_seed() -> None:
    server = Server()
    await route(server).complete(CompletionRequest({"model": "m"}, 2, 77, "demo"))
    assert json.loads(server.asked[0].content) == {"model": "m", "n": 2, "seed": 77}


async def test_a_redirect_leads_no_token_to_another_server() -> None:
    server = Server(lambda request: httpx.Response(307, headers={"location": "http://elsewhere.test/v1"}))
    with pytest.raises(RouteUnavailable, match="HTTP 307"):
        await route(server).complete(REQUEST)
    assert [request.url.host for request in server.asked] == ["server.test"]


async def test_a_new_route_asks_little_until_the_server_shows_its_capacity() -> None:
    server = Server(hang)
    one = route(server, max_concurrent=32)
    calls = await started(server, one, 20)
    assert (one.in_flight, one.queued, len(server.asked)) == (8, 12, 8)
    await asyncio.gather(*map(cancel, calls))


async def test_a_server_that_is_too_slow_is_asked_for_less() -> None:
    one = route(Server(hang), total_timeout_s=0.01, longest_timeout_s=0.01)
    before = one.concurrency.limit
    with pytest.raises(RouteUnavailable, match="no answer within"):
        await one.complete(REQUEST)
    assert one.concurrency.limit < before


async def test_a_call_to_a_failing_server_does_not_wait_in_line() -> None:
    server = Server(hang)
    one = route(server, max_concurrent=1)
    calls = await started(server, one)
    one.breaker.record_failure(time.monotonic())
    with pytest.raises(RouteUnavailable, match="breaker open"):
        await asyncio.wait_for(one.complete(REQUEST), 1)
    await asyncio.gather(*map(cancel, calls))


async def test_a_probe_that_the_caller_gives_up_leaves_the_next_call_to_probe() -> None:
    server = Server(hang)
    one = half_open(server)
    (probe,) = await started(server, one)
    with pytest.raises(RouteUnavailable, match="breaker open"):
        await one.complete(REQUEST)
    await cancel(probe)
    server.handler = answer
    assert len((await one.complete(REQUEST)).choices) == 3


async def test_a_refusal_shows_that_the_server_is_back() -> None:
    one = half_open(Server(lambda request: httpx.Response(404)))
    for _ in range(2):
        with pytest.raises(RouteUnavailable, match="check model name"):
            await one.complete(REQUEST)
    assert one.breaker.state(time.monotonic()) == "closed"


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_the_longest_pause_that_a_server_asks_for_is_respected(status: int) -> None:
    async def pausing(request: httpx.Request) -> httpx.Response:
        number = len(server.asked)
        for _ in range(number):  # the second request is answered after the first one
            await until_asked(server, 2)
        return httpx.Response(status, headers={"retry-after": ["60", "1"][number - 1]})

    server = Server(pausing)
    one = route(server, breaker_failures=9)
    await asyncio.gather(one.complete(REQUEST), one.complete(REQUEST), return_exceptions=True)
    assert len(server.asked) == 2
    with pytest.raises(RouteUnavailable, match=r"the server asks for a pause of another [56]\d\.\d s"):
        await asyncio.wait_for(one.complete(REQUEST), 1)


@pytest.mark.parametrize(
    ("fails", "lost"),
    [
        (httpx.ConnectError("refused"), 0),
        (httpx.WriteError("cut off"), 0),
        (httpx.ReadError("cut off"), 1),
        (httpx.Response(200, content=b"no JSON"), 1),
        (httpx.Response(500), 0),
    ],
)
async def test_only_a_request_that_the_server_may_have_answered_is_lost(
    fails: httpx.Response | Exception, lost: int
) -> None:
    counted = 0

    def count() -> None:
        nonlocal counted
        counted += 1

    def fail(request: httpx.Request) -> httpx.Response:
        if isinstance(fails, Exception):
            raise fails
        return fails

    with pytest.raises(RouteUnavailable):
        await route(Server(fail)).complete(CompletionRequest({}, 1, 1, "demo", on_lost_response=count))
    assert counted == lost


async def test_a_request_that_the_caller_gives_up_counts_as_lost() -> None:
    server, counted = Server(hang), list[bool]()
    one = route(server)
    request = CompletionRequest({}, 1, 1, "demo", on_lost_response=lambda: counted.append(True))
    call: asyncio.Task[object] = asyncio.create_task(one.complete(request))
    await until_asked(server)
    await cancel(call)
    assert counted == [True]


async def test_a_connection_whose_call_failed_is_closed_and_not_used_again() -> None:
    pool = ClientPool(RouteSpec.model_validate({"url": "http://server.test/v1"}), use_direct=False)
    pool.transport = httpx.MockTransport(answer)
    with pytest.raises(asyncio.CancelledError):
        async with pool.borrow() as broken:
            raise asyncio.CancelledError
    assert broken.is_closed
    async with pool.borrow() as sound:
        assert sound is not broken
    async with pool.borrow() as again:
        assert again is sound
    await pool.close()
    assert sound.is_closed
