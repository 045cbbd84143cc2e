"""A TCP proxy that injects network faults: latency, connection resets, half-open connections, lost HTTP responses.

`fault_rate` applies to HTTP: the proxy draws a fault for each request. Resets and half-open connections fit any
protocol.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from tests.tcp_server import serve_tcp

METHODS = (b"GET ", b"PUT ", b"HEAD ", b"POST ", b"DELETE ")
SERVICE_UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
# Weights. response_lost: the server acts, the client gets no answer. hung: rare, because a client waits ten seconds.
FAULTS = {"refused": 6, "response_lost": 6, "truncated": 6, "hung": 1}


@dataclass(eq=False)
class ProxiedConnection:
    """One connection through the proxy. `fault` is the fault that the next response gets, empty for none."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    silent: bool = False
    fault: str = ""

    def reset(self) -> None:
        """Reset both ends."""
        for end in (self.client, self.server):
            end.transport.abort()


@dataclass
class FaultProxy:
    """The proxy. `target_port` is the server's port; `delay` is (minimum, maximum) seconds per packet."""

    target_port: int = 0
    fault_rate: float = 0.0
    delay: tuple[float, float] = (0.0, 0.0)
    seed: int = 0
    port: int = 0
    disconnected: bool = False
    swallowing: bool = False
    faults: "Counter[str]" = field(default_factory=Counter)
    connections: set[ProxiedConnection] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def reset_connections(self) -> None:
        """Reset every open connection."""
        for connection in self.connections:
            connection.reset()

    def half_open(self) -> None:
        """Drop all further packets of the open connections without closing them."""
        for connection in self.connections:
            connection.silent = True

    def swallow(self) -> None:
        """Let the server hang, as a black hole does: connections open, and no byte of any of them arrives."""
        self.swallowing = True
        self.half_open()

    def release(self) -> None:
        """Let the server answer again, on new connections."""
        self.swallowing = False
        self.reset_connections()

    def disconnect(self) -> None:
        """Make the server unreachable."""
        self.disconnected = True
        self.reset_connections()

    def reconnect(self) -> None:
        """Make the server reachable again."""
        self.disconnected = False

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.disconnected:
            writer.transport.abort()
            return
        try:
            responses, server = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        connection = ProxiedConnection(writer, server, silent=self.swallowing)
        self.connections.add(connection)
        try:
            with suppress(OSError):
                await asyncio.gather(
                    self._forward_requests(reader, connection), self._forward_responses(responses, connection)
                )
        finally:
            connection.reset()
            self.connections.discard(connection)

    async def _forward_requests(self, reader: asyncio.StreamReader, connection: ProxiedConnection) -> None:
        while packet := await self._read(reader, connection):
            if packet.startswith(METHODS) and self._rng.random() < self.fault_rate:
                connection.fault = self._rng.choices(list(FAULTS), list(FAULTS.values()))[0]
                self.faults[connection.fault] += 1
            if connection.fault == "refused":
                connection.client.write(SERVICE_UNAVAILABLE)
                await connection.client.drain()
                connection.client.close()
                return
            connection.server.write(packet)
            await connection.server.drain()
        connection.reset()

    async def _forward_responses(self, reader: asyncio.StreamReader, connection: ProxiedConnection) -> None:
        while packet := await self._read(reader, connection):
            if connection.fault == "hung":
                continue
            if connection.fault == "truncated":
                connection.client.write(packet[: len(packet) // 2])
                await connection.client.drain()
            if connection.fault in ("response_lost", "truncated"):
                break
            connection.client.write(packet)
            await connection.client.drain()
        connection.reset()

    async def _read(self, reader: asyncio.StreamReader, connection: ProxiedConnection) -> bytes:
        while packet := await reader.read(65_536):
            await asyncio.sleep(self._rng.uniform(*self.delay))
            if not connection.silent:
                break
        return packet


@asynccontextmanager
async def serve_proxy(proxy: FaultProxy) -> AsyncIterator[FaultProxy]:
    """Listen on a free port, `proxy.port`, for the duration of the body."""
    async with serve_tcp(proxy._handle) as proxy.port:
        yield proxy
