"""A server in trouble, whichever number it says so with: its route rests, and nobody is sent to the settings."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from services.judge.adapters import route as routes
from services.judge.adapters.completions import MAX_RESPONSE_BYTES
from services.judge.adapters.route import RouteClient
from services.judge.config import RouteSpec
from services.judge.ports import CompletionRequest, RouteUnavailable
from tests.unit.judge.bad_servers import always, serving

QUESTION = CompletionRequest({"messages": []}, 3, 1, "demo")


def route(answer: httpx.Response) -> RouteClient:
    spec = RouteSpec.model_validate({"url": "http://server.test/v1", "breaker_failures": 2, "total_timeout_s": 5})
    opened = RouteClient("r", spec)
    opened.clients.transport = httpx.MockTransport(lambda _: answer)
    return opened


@pytest.mark.parametrize("status", [500, 501, 508, 520, 524, 529])
async def test_trouble_of_the_server_opens_the_breaker(status: int) -> None:
    asked = route(httpx.Response(status, text="<html>the origin is down</html>"))
    with pytest.raises(RouteUnavailable, match=f"HTTP {status}") as told:
        await asked.complete(QUESTION)
    assert "check model name" not in str(told.value)
    with pytest.raises(RouteUnavailable, match="breaker open after 2 failures"):
        await asked.complete(QUESTION)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_trouble_of_the_configuration_is_told_as_such(status: int) -> None:
    asked = route(httpx.Response(status))
    for _ in range(3):
        with pytest.raises(RouteUnavailable, match="check model name, token and address"):
            await asyncio.wait_for(asked.complete(QUESTION), 1)


async def test_an_error_that_comes_as_an_answer_is_told() -> None:
    body = b'{"error": {"message": "the model is being loaded"}}'
    with pytest.raises(RouteUnavailable, match="HTTP 200, but the body has no choices: the model is being loaded"):
        await route(httpx.Response(200, content=body)).complete(QUESTION)


async def test_a_date_that_no_clock_can_hold_is_no_wish_to_wait() -> None:
    date = "Mon, 99999999999999999999 Jan 2026 00:00:00 GMT"
    with pytest.raises(RouteUnavailable, match="HTTP 503"):
        await route(httpx.Response(503, headers={"retry-after": date})).complete(QUESTION)


class Drip(httpx.AsyncByteStream):
    """A body whose bytes come one by one, for ever."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.05)


async def test_a_list_of_models_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "LIST_MODELS_TIMEOUT_S", 0.3)
    with pytest.raises(RouteUnavailable, match=r"no list of models within 0.3 s"):
        await asyncio.wait_for(route(httpx.Response(200, stream=Drip())).list_models(), 3)


async def test_a_list_of_models_is_read_up_to_the_limit_of_an_answer() -> None:
    models = b'{"data": [{"id": "m"}]}'
    assert await route(httpx.Response(200, content=models)).list_models() == {"m": None}
    with pytest.raises(RouteUnavailable, match="more than"):
        await route(httpx.Response(200, content=models + b" " * MAX_RESPONSE_BYTES)).list_models()


@pytest.mark.parametrize(
    ("status", "says"), [(401, "HTTP 401 .*check its token"), (403, "HTTP 403 .*check its token"), (503, "HTTP 503")]
)
async def test_a_server_that_refuses_its_list_of_models_or_is_just_starting_has_not_told_it(
    status: int, says: str
) -> None:
    with pytest.raises(RouteUnavailable, match=says):
        await route(httpx.Response(status)).list_models()


async def test_a_server_without_a_list_of_models_need_not_have_one() -> None:
    assert await route(httpx.Response(404)).list_models() == {}


@pytest.mark.parametrize("content", [b"", b"sk-new\nsk-old\n", "sk-gehe\u00efm".encode(), b"sk-\xff"])
async def test_a_token_file_without_one_token_is_named_and_nothing_of_it_is_told(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "token").write_bytes(content)
    async with serving(always(200)) as server:
        asked = RouteClient("r", RouteSpec.model_validate({"url": server.url, "token_file": str(tmp_path / "token")}))
        with pytest.raises(RouteUnavailable) as told:
            await asked.complete(QUESTION)
        assert server.requests == 0
    assert "must hold one token" in str(told.value)
    assert "sk-" not in str(told.value)
    assert asked.breaker.failures == 0, "the server is not to blame"
