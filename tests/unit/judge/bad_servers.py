"""Misbehaving servers for the outage matrix: asyncio servers on free ports that count their requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.servers import free_ports
from tests.tcp_server import serve_tcp

VOTE = {"reason": "x", "progress": 2, "dialog": 0, "efficiency": 3}
CHOICES = [{"message": {"content": json.dumps(VOTE)}, "finish_reason": "stop"}] * 3
GOOD = json.dumps({"choices": CHOICES, "usage": {"prompt_tokens": 900, "completion_tokens": 60}}).encode()

Reply = Callable[["Server", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """A running server. `reply` may be replaced while it runs."""

    port: int
    reply: Reply
    requests: int = 0
    last_line: bytes = b""
    """The line that the last request began with, in lower case."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


@asynccontextmanager
async def serving(reply: Reply) -> AsyncIterator[Server]:
    """A server that answers every request by `reply`."""
    server = Server(0, reply)

    async def requested(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            server.requests += 1
            server.last_line = head.partition(b"\r\n")[0]
            await server.reply(server, writer)
            await writer.drain()

    async with serve_tcp(requested) as server.port:
        yield server


def response(status: int, body: bytes = GOOD, **headers: str) -> bytes:
    """An HTTP response."""
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "content-type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def always(status: int, body: bytes = GOOD, **headers: str) -> Reply:
    """The same response to every request."""

    async def reply(server: Server, writer: asyncio.StreamWriter) -> None:
        writer.write(response(status, body, **headers))

    return reply


def in_turn(*replies: Reply) -> Reply:
    """Each reply in turn; the last one repeats."""

    async def reply(server: Server, writer: asyncio.StreamWriter) -> None:
        await replies[min(server.requests, len(replies)) - 1](server, writer)

    return reply


async def silence(server: Server, writer: asyncio.StreamWriter) -> None:
    """The first byte after 120 s."""
    await asyncio.sleep(120)


async def drip(server: Server, writer: asyncio.StreamWriter) -> None:
    """One byte a second."""
    for byte in response(200):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(1)


async def endless(server: Server, writer: asyncio.StreamWriter) -> None:
    """A body that never ends, as fast as it can."""
    writer.write(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
        await writer.drain()


async def hang_up(server: Server, writer: asyncio.StreamWriter) -> None:
    """Closes the connection in the middle of the response."""
    writer.write(response(200)[:80])
    await writer.drain()
    writer.close()


def refusing_url() -> str:
    """An address that refuses connections."""
    return f"http://127.0.0.1:{free_ports(1)[0]}/v1"
