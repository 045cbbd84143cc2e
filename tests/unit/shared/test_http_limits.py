"""The HTTP server of every service ends slow and odd connections."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.responses import PlainTextResponse

from shared.runtime import health
from shared.runtime.health import Health, listen, serve
from shared.runtime.http_protocol import BoundedHttpProtocol


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """A served application that waits a fifth of a second for headers."""
    monkeypatch.setattr(BoundedHttpProtocol, "headers_s", 0.2)
    listener = listen("127.0.0.1", 0)
    number = listener.getsockname()[1]
    async with serve(Health(app=PlainTextResponse("here")), listener):
        yield number


async def answer(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """What the server sends until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await asyncio.sleep(pause)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


async def test_a_connection_without_a_whole_header_is_closed(port: int) -> None:
    assert await answer(port) == b""
    assert await answer(port, b"GET /here HTTP/1.1\r\nHost: x\r\nX-Slow: ") == b""


async def test_headers_in_time_are_answered(port: int) -> None:
    whole = b"Host: x\r\nConnection: close\r\n\r\n"
    assert (await answer(port, b"GET /here HTTP/1.1\r\n", whole, pause=0.05)).endswith(b"here")


async def test_too_many_connections_get_a_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MAX_CONNECTIONS", 3)
    listener = listen("127.0.0.1", 0)
    number = listener.getsockname()[1]
    async with serve(Health(app=PlainTextResponse("here")), listener):
        idle = [await asyncio.open_connection("127.0.0.1", number) for _ in range(3)]
        await asyncio.sleep(0.1)  # the server has accepted all of them
        request = b"GET /here HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        assert (await answer(number, request)).startswith(b"HTTP/1.1 503")
        for _, writer in idle:
            writer.close()
        await asyncio.sleep(0.1)
        assert (await answer(number, request)).endswith(b"here")


async def test_connect_is_refused_without_a_traceback(port: int, caplog: pytest.LogCaptureFixture) -> None:
    for target in (b"/livez", b"example.org:443"):
        request = b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        assert b" 405 " in (await answer(port, request)).splitlines()[0]
    assert caplog.records == []
