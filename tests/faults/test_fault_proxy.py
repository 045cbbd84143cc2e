"""The proxy of the fault tests does what its faults say: a test with a harmless fault would prove nothing."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.faults.fault_proxy import FaultProxy, serve_proxy
from tests.tcp_server import serve_tcp


@pytest.fixture
async def proxy() -> AsyncIterator[FaultProxy]:
    """A proxy in front of a server that sends everything back."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while packet := await reader.read(1_000):
            writer.write(packet)

    async with serve_tcp(echo) as port, serve_proxy(FaultProxy(port)) as one:
        yield one


async def test_a_black_hole_takes_bytes_and_answers_nothing_until_its_release(proxy: FaultProxy) -> None:
    before, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"ping")
    assert await before.readexactly(4) == b"ping"
    proxy.swallow()
    during, later = await asyncio.open_connection("127.0.0.1", proxy.port)
    for reader, one in ((before, writer), (during, later)):
        one.write(b"ping")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(4), 0.3)
    proxy.release()
    for reader in (before, during):
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(4), 5)
    after, last = await asyncio.open_connection("127.0.0.1", proxy.port)
    last.write(b"ping")
    assert await asyncio.wait_for(after.readexactly(4), 5) == b"ping"
    for one in (writer, later, last):
        one.close()
