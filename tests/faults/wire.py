"""A TCP proxy between a service and a server, that does what networks do: delay, cut, go silent, lose answers.

Faults by `share` are for HTTP: they are drawn anew for every request. `cut` and `half_open` are for any protocol.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

METHODS = (b"GET ", b"PUT ", b"HEAD ", b"POST ", b"DELETE ")
REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
# Unheard: the server does it, the answer is lost. Hung: no answer ever; rare, because a client waits ten seconds.
FAULTS = {"refused": 6, "unheard": 6, "truncated": 6, "hung": 1}


@dataclass(eq=False)
class Link:
    """One connection through the proxy. `fate` is what will become of the next answer."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    silent: bool = False
    fate: str = ""

    def cut(self) -> None:
        """Both ends hear of it at once (a reset)."""
        for end in (self.client, self.server):
            end.transport.abort()


@dataclass
class Wire:
    """The proxy. `target` is the server's port; `delay` is (least, most) seconds for each packet."""

    target: int = 0
    share: float = 0.0
    delay: tuple[float, float] = (0.0, 0.0)
    seed: int = 0
    port: int = 0
    away: bool = False
    faults: "Counter[str]" = field(default_factory=Counter)
    links: set[Link] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)

    def cut(self) -> None:
        """Reset every connection."""
        for link in self.links:
            link.cut()

    def half_open(self) -> None:
        """From now on nothing passes on today's connections, and nobody is told."""
        for link in self.links:
            link.silent = True

    def cut_off(self) -> None:
        """From now on the server cannot be reached."""
        self.away = True
        self.cut()

    def join(self) -> None:
        """It can be reached again."""
        self.away = False

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.away:
            writer.transport.abort()
            return
        try:
            answers, server = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        link = Link(writer, server)
        self.links.add(link)
        try:
            with suppress(OSError):
                await asyncio.gather(self._requests(reader, link), self._answers(answers, link))
        finally:
            link.cut()
            self.links.discard(link)

    async def _requests(self, reader: asyncio.StreamReader, link: Link) -> None:
        while packet := await self._read(reader, link):
            if packet.startswith(METHODS) and self._dice.random() < self.share:
                link.fate = self._dice.choices(list(FAULTS), list(FAULTS.values()))[0]
                self.faults[link.fate] += 1
            if link.fate == "refused":
                link.client.write(REFUSAL)
                await link.client.drain()
                link.client.close()
                return
            link.server.write(packet)
            await link.server.drain()
        link.cut()

    async def _answers(self, reader: asyncio.StreamReader, link: Link) -> None:
        while packet := await self._read(reader, link):
            if link.fate == "hung":
                continue
            if link.fate == "truncated":
                link.client.write(packet[: len(packet) // 2])
                await link.client.drain()
            if link.fate in ("unheard", "truncated"):
                break
            link.client.write(packet)
            await link.client.drain()
        link.cut()

    async def _read(self, reader: asyncio.StreamReader, link: Link) -> bytes:
        while packet := await reader.read(65_536):
            await asyncio.sleep(self._dice.uniform(*self.delay))
            if not link.silent:
                break
        return packet


@asynccontextmanager
async def laid(wire: Wire) -> AsyncIterator[Wire]:
    """The proxy, listening on `wire.port` for the time of the body."""
    server = await asyncio.start_server(wire._connected, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        wire.cut()
        await server.wait_closed()
