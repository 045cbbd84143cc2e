"""Any server error rests the route; configuration errors name the settings to check."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from services.judge.telemetry import ROUTES
from shared.llm import route as routes
from shared.llm.completions import MAX_RESPONSE_BYTES
from shared.llm.port import CompletionRequest, RouteUnavailable
from shared.llm.route import RouteClient
from shared.llm.route_spec import RouteSpec
from tests.unit.judge.bad_servers import always, refusing_url, serving

REQUEST = CompletionRequest({"messages": []}, 3, 1, "demo")


def route(answer: httpx.Response) -> RouteClient:
    spec = RouteSpec.model_validate({"url": "http://server.test/v1", "breaker_failures": 2, "total_timeout_s": 5})
    opened = RouteClient("r", spec, ROUTES)
    opened.clients.transport = httpx.MockTransport(lambda _: answer)
    return opened


@pytest.mark.parametrize("status", [500, 501, 508, 520, 524, 529])
async def test_server_errors_open_the_breaker(status: int) -> None:
    client = route(httpx.Response(status, text="<html>the origin is down</html>"))
    with pytest.raises(RouteUnavailable, match=f"HTTP {status}") as caught:
        await client.complete(REQUEST)
    assert "check model name" not in str(caught.value)
    with pytest.raises(RouteUnavailable, match="breaker open after 2 failures"):
        await client.complete(REQUEST)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_configuration_errors_are_reported_as_such(status: int) -> None:
    client = route(httpx.Response(status))
    for _ in range(3):
        with pytest.raises(RouteUnavailable, match="check model name, token and address"):
            await asyncio.wait_for(client.complete(REQUEST), 1)


async def test_error_in_a_200_response_is_reported() -> None:
    body = b'{"error": {"message": "the model is being loaded"}}'
    with pytest.raises(RouteUnavailable, match="HTTP 200, but the body has no choices: the model is being loaded"):
        await route(httpx.Response(200, content=body)).complete(REQUEST)


async def test_retry_after_date_out_of_range_is_ignored() -> None:
    date = "Mon, 99999999999999999999 Jan 2026 00:00:00 GMT"
    with pytest.raises(RouteUnavailable, match="HTTP 503"):
        await route(httpx.Response(503, headers={"retry-after": date})).complete(REQUEST)


async def test_a_route_behind_a_proxy_is_called_through_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", refusing_url())  # the environment is never asked
    async with serving(always(200)) as proxy, serving(always(200)) as model:
        behind = {"url": "http://models.invalid/v1", "direct_url": model.url, "proxy": proxy.url.removesuffix("/v1")}
        spec = RouteSpec.model_validate(behind)
        for direct, asked, line in (
            (False, proxy, b"post http://models.invalid/v1/chat/completions http/1.1"),
            (True, model, b"post /v1/chat/completions http/1.1"),
        ):
            client = RouteClient("r", spec, ROUTES, use_direct=direct)
            assert len((await client.complete(REQUEST)).choices) == 3
            assert asked.last_line == line
            await client.close()
        assert (proxy.requests, model.requests) == (1, 1)


class Drip(httpx.AsyncByteStream):
    """An endless body of single bytes."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.05)


async def test_endless_model_list_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "LIST_MODELS_TIMEOUT_S", 0.3)
    with pytest.raises(RouteUnavailable, match=r"no list of models within 0.3 s"):
        await asyncio.wait_for(route(httpx.Response(200, stream=Drip())).list_models(), 3)


async def test_model_list_is_limited_to_the_size_of_a_response() -> None:
    models = b'{"data": [{"id": "m"}]}'
    assert await route(httpx.Response(200, content=models)).list_models() == {"m": None}
    with pytest.raises(RouteUnavailable, match="more than"):
        await route(httpx.Response(200, content=models + b" " * MAX_RESPONSE_BYTES)).list_models()


@pytest.mark.parametrize(
    ("status", "says"), [(401, "HTTP 401 .*check its token"), (403, "HTTP 403 .*check its token"), (503, "HTTP 503")]
)
async def test_refused_or_unavailable_model_list_raises_route_unavailable(status: int, says: str) -> None:
    with pytest.raises(RouteUnavailable, match=says):
        await route(httpx.Response(status)).list_models()


async def test_server_without_a_model_list_is_accepted() -> None:
    assert await route(httpx.Response(404)).list_models() == {}


@pytest.mark.parametrize("content", [b"", b"sk-new\nsk-old\n", "sk-gehe\u00efm".encode(), b"sk-\xff"])
async def test_invalid_token_file_is_named_without_its_content(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    async with serving(always(200)) as server:
        client = RouteClient(
            "r", RouteSpec.model_validate({"url": server.url, "token_file": str(tmp_path / "token")}), ROUTES
        )
        with pytest.raises(RouteUnavailable) as caught:
            await client.complete(REQUEST)
        assert server.requests == 0
    assert "must hold one token" in str(caught.value)
    assert "sk-" not in str(caught.value)
    assert client.breaker.failures == 0, "the server is healthy"
