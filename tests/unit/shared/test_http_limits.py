"""The HTTP server of every service ends slow and odd connections."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from shared.runtime import health, http_protocol
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


@pytest.mark.parametrize("header", [b"X-Forwarded-For: 203.0.113.7", b"forwarded: for=203.0.113.7"])
async def test_metrics_are_not_answered_through_a_proxy(port: int, header: bytes) -> None:
    request = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n"
    assert b"\nprocess_" in await answer(port, request % (b"/metrics", b""))
    refused = await answer(port, request % (b"/metrics", header + b"\r\n"))
    assert refused.startswith(b"HTTP/1.1 404")
    assert refused.endswith(b"/metrics is not answered through a proxy: read it at the service's own port\n")
    assert (await answer(port, request % (b"/livez", header + b"\r\n"))).startswith(b"HTTP/1.1 200")


async def test_a_header_does_not_change_the_address_of_a_client() -> None:
    async def address(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(f"{scope['client'][0]} {scope['scheme']}")(scope, receive, send)

    listener = listen("127.0.0.1", 0)
    forged = b"X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\n"
    async with serve(Health(app=address), listener):
        shown = await answer(listener.getsockname()[1], HERE[:-2] + forged + b"\r\n")
    assert shown.endswith(b"127.0.0.1 http")


REQUEST = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
HERE, PROBE = REQUEST % b"/here", REQUEST % b"/livez"


@pytest.fixture
async def crowd(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """The port of a server with room for three connections, and one more to refuse."""
    monkeypatch.setattr(health, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(http_protocol, "SPARE", 1)
    listener = listen("127.0.0.1", 0)
    async with serve(Health(app=PlainTextResponse("here")), listener):
        yield listener.getsockname()[1]


@asynccontextmanager
async def idle_connections(port: int, number: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """So many connections that send nothing."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(number)]
    await asyncio.sleep(0.1)  # the server has accepted all of them
    yield [reader for reader, _ in opened]
    for _, writer in opened:
        writer.close()


async def test_too_many_connections_get_a_503(crowd: int) -> None:
    async with idle_connections(crowd, 3):
        refused = await answer(crowd, HERE)
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 5" in refused.lower()
        assert (await answer(crowd, PROBE)).startswith(b"HTTP/1.1 200")  # a restart of the service would not help
    await asyncio.sleep(0.1)
    assert (await answer(crowd, HERE)).endswith(b"here")


async def test_a_flood_of_idle_connections_is_closed(crowd: int) -> None:
    async with idle_connections(crowd, 20) as readers:
        assert sum(reader.at_eof() or reader.exception() is not None for reader in readers) == 16
    await asyncio.sleep(0.1)
    assert (await answer(crowd, HERE)).endswith(b"here")


OPENS_MANY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, int(sys.argv[1])))
from shared.runtime.health import connection_limit
print(connection_limit(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(("most", "limits"), [(10_000, "4096 10000"), (600, "300 600")])
def test_connections_leave_files_for_bus_and_store(most: int, limits: str) -> None:
    command = [sys.executable, "-c", OPENS_MANY, str(most)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == limits


async def test_connect_is_refused_without_a_traceback(port: int, caplog: pytest.LogCaptureFixture) -> None:
    for target in (b"/livez", b"example.org:443"):
        request = b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        assert b" 405 " in (await answer(port, request)).splitlines()[0]
    assert caplog.records == []
