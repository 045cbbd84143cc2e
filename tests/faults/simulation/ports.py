"""Simulated processes and what they see of store and bus: a process may die or freeze at any call.

A killed process does nothing more: its tasks are cancelled, and each further call raises CancelledError without effect.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shared.bus.memory import MemoryBus, MemoryDelivery
from shared.bus.port import Subscription
from shared.contracts.envelope import Envelope
from shared.errors import Transient, ZeldaError
from shared.store.port import ObjectEntry
from tests.faults.simulation.commit_checks import CheckedStore

T = TypeVar("T")


@dataclass
class Servers:
    """Store and bus of one simulation, and their present faults."""

    loop: asyncio.AbstractEventLoop
    store: CheckedStore
    bus: MemoryBus
    rng: random.Random
    store_away: bool = False
    answers_to_lose: int = 0
    published: list[Envelope] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    """Errors that no process may end with."""


class SimulatedProcess:
    """One process: its tasks, and whether it lives or is frozen."""

    def __init__(self, name: str, servers: Servers) -> None:
        self.name, self.servers = name, servers
        self.alive = True
        self._thawed: asyncio.Event | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.store, self.bus = ProcessStore(self), ProcessBus(self)

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run `work` as a task of this process."""
        task = self.servers.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ZeldaError):
            self.servers.unexpected.append(f"{self.name}: {type(error).__name__}: {error}")

    @property
    def busy(self) -> bool:
        """Whether it has work."""
        return bool(self._tasks)

    def kill(self) -> None:
        """`kill -9`."""
        self.alive = False
        self.thaw()
        for task in self._tasks:
            task.cancel()

    def freeze(self) -> None:
        """SIGSTOP."""
        self._thawed = self._thawed or asyncio.Event()

    def thaw(self) -> None:
        """SIGCONT."""
        if self._thawed is not None:
            self._thawed.set()
            self._thawed = None

    async def pause(self) -> None:
        """Let other processes run; here this one may die or freeze."""
        if self.servers.rng.getrandbits(1):
            await asyncio.sleep(0)
        while self._thawed is not None:
            await self._thawed.wait()
        if not self.alive:
            raise asyncio.CancelledError


class ProcessStore:
    """The store as one process reaches it."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process, self._servers = process, process.servers

    async def get(self, key: str, digest: str | None = None) -> bytes:
        """See the port."""
        return await self._read(lambda: self._servers.store.get(key, digest))

    async def exists(self, key: str) -> bool:
        """See the port."""
        return await self._read(lambda: self._servers.store.exists(key))

    async def list(self, prefix: str) -> list[ObjectEntry]:
        """See the port."""
        return await self._read(lambda: self._servers.store.list(prefix))

    async def put(self, key: str, data: bytes) -> str:
        """See the port."""
        return await self._write(lambda: self._servers.store.put(key, data))

    async def create(self, key: str, data: bytes) -> str:
        """See the port."""
        return await self._write(lambda: self._servers.store.create(key, data))

    async def delete(self, key: str) -> None:
        """See the port."""
        await self._write(lambda: self._servers.store.delete(key))

    async def _read(self, call: Callable[[], Awaitable[T]]) -> T:
        await self._process.pause()
        if self._servers.store_away:
            raise Transient("the store is away")
        return await call()

    async def _write(self, call: Callable[[], Awaitable[T]]) -> T:
        found = await self._read(call)
        if self._servers.answers_to_lose:
            self._servers.answers_to_lose -= 1
            raise Transient("the store's answer was lost")
        await self._process.pause()
        return found


class ProcessBus:
    """The bus as one process reaches it."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process, self._servers = process, process.servers
        self.closed = asyncio.Event()

    @property
    def connected(self) -> bool:
        """Whether the bus is there."""
        return self._servers.bus.connected

    async def publish(self, event: Envelope, *, replay_nonce: int = 0) -> None:
        """See the port."""
        await self._process.pause()
        await self._servers.bus.publish(event, replay_nonce=replay_nonce)
        self._servers.published.append(event)
        await self._process.pause()

    async def fetch(self, subscription: Subscription, batch: int, timeout_s: float = 0) -> "Sequence[ProcessDelivery]":
        """Messages that are due; it does not wait for others."""
        await self._process.pause()
        found = await self._servers.bus.fetch(subscription, batch, 0)
        return [ProcessDelivery(self._process, one) for one in found]

    async def pending(self, subscription: Subscription) -> int:
        """See the port."""
        return await self._servers.bus.pending(subscription)

    async def ensure(self, subscription: Subscription) -> None:
        """See the port."""
        await self._process.pause()
        await self._servers.bus.ensure(subscription)

    async def close(self) -> None:
        """Nothing to flush."""


class ProcessDelivery:
    """One delivery: no dead process answers it."""

    def __init__(self, process: SimulatedProcess, inner: MemoryDelivery) -> None:
        self._process, self._inner = process, inner
        self.raw, self.subject, self.number, self.attempt = inner.raw, inner.subject, inner.number, inner.attempt

    async def ack(self) -> None:
        """See the port."""
        await self._process.pause()
        await self._inner.ack()

    async def nak(self, delay_s: float) -> None:
        """See the port."""
        await self._process.pause()
        await self._inner.nak(delay_s)

    async def reject(self, reason: str) -> None:
        """See the port."""
        await self._process.pause()
        await self._inner.reject(reason)

    async def in_progress(self) -> None:
        """See the port."""
        await self._process.pause()
        await self._inner.in_progress()
