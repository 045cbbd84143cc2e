"""A TCP server inside a test. Its connections end with it: an open one fails the test in which it is collected."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serve_tcp(handle: Handle, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Answer every connection by `handle`, with `tls` an encrypted one. Yields the port."""
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        # The client may close the connection; the end of `serve_tcp` cancels what is left.
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError), closing(writer):
            await handle(reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections)
