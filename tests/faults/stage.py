"""A whole system of real processes for a test: bus server, S3 server, rules judge and services, and a run on it."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.client import open_client
from cli.stack.process import Supervised
from cli.stack.reach import store_of
from cli.stack.services import SERVICES
from cli.stack.system import Options, System, kept, prepare
from shared.contracts.ids import RunId
from shared.store import keys
from shared.store.port import Store
from tests.faults.checker import Audit, audit
from tests.faults.wire import Wire

RUN = RunId("ring")
# Small, but a whole ring: the driver samples in its own process, and three epochs take some seconds each.
CONFIG: dict[str, Any] = {
    "world": "garden",
    "epochs": 3,
    "epoch_steps": 2_400,
    "episode_length": 300,
    "batch_size": 600,
    "env_runners": 0,
    "envs_per_runner": 4,
    "eval_interval": 0,
    "seed": 11,
}
# A coordinator in a hurry: what takes it half a minute in production takes it seconds here.
HASTE = {
    "coordinator": {
        "ZELDA_COORDINATOR__INTERVAL_S": "0.5",
        "ZELDA_COORDINATOR__QUIET_S": "5",
        "ZELDA_COORDINATOR__LEASE_S": "4",
    }
}
EXPORTS = {"exporter": {"ZELDA_EXPORT__POLICY": "none"}}
ENDED = ("finished", "failed", "stopped")


@dataclass(slots=True)
class Stage:
    """One system and one run."""

    system: System
    store: Store
    said: list[str] = field(default_factory=list)
    epochs: int = 0

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the coordinator, again and again while it is away."""
        return await asyncio.to_thread(self._ask, method, path, body)

    def _ask(self, method: str, path: str, body: Any) -> Any:
        from cli.exits import UNREACHABLE, Quit

        deadline = time.monotonic() + 60
        while True:
            try:
                with open_client(self.system.connection) as client:
                    return client.get(path) if method == "GET" else client.post(path, body)
            except Quit as problem:
                if problem.code != UNREACHABLE or time.monotonic() > deadline:
                    raise
            time.sleep(0.3)

    async def start(self, **config: Any) -> None:
        """Start the run."""
        whole = CONFIG | config
        self.epochs = whole["epochs"]
        await self.ask("POST", "/runs", {"run": RUN, "config": whole})

    async def state(self) -> str:
        """State of the run."""
        return str((await self.ask("GET", f"/runs/{RUN}"))["record"]["state"])

    async def ended(self, seconds: float = 240) -> str:
        """The state in which the run ends, within `seconds`."""
        await self.until(lambda: self._has_ended(), seconds)
        return await self.state()

    async def _has_ended(self) -> bool:
        return await self.state() in ENDED

    async def until(self, check: Callable[[], Awaitable[bool]], seconds: float = 120) -> None:
        """Wait for something to become true; a failure tells what the processes said last."""
        deadline = time.monotonic() + seconds
        while not await check():
            if time.monotonic() > deadline or self.system.keeper.done():
                last = {one.spec.name: one.last_line() for one in self.system.services}
                raise AssertionError(f"not within {seconds} s; {last}; {self.said}")
            await asyncio.sleep(0.05)

    async def recorded(self, epoch: int) -> bool:
        """Moment: the epoch has recorded something and is not finished."""
        return bool(await self.store.list(keys.segments_prefix(RUN, epoch)))

    async def judged(self, epoch: int) -> bool:
        """Moment: the first outcome of the epoch is there."""
        return bool(await self.store.list(keys.scores_prefix(RUN, epoch)))

    async def accounted(self, epoch: int) -> bool:
        """Moment: the epoch is played, its reward model is due."""
        return await self.store.exists(keys.epoch_finished(RUN, epoch))

    def kill(self, name: str) -> None:
        """`kill -9` of one process; the supervisor starts it again."""
        process = self.process(name).process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)

    def process(self, name: str) -> Supervised:
        """One process by name."""
        return self.system.process(name)

    async def audit(self) -> Audit:
        """The checker's findings."""
        return await audit(self.store, RUN)


@asynccontextmanager
async def stage(
    root: Path, store_wire: Wire | None = None, bus_wire: Wire | None = None, **extra: dict[str, str]
) -> AsyncIterator[Stage]:
    """A system for the time of the body; `extra` are settings of a service. Store and bus may be behind wires."""
    said: list[str] = []
    wired = {"ZELDA_STORE__ENDPOINT": f"http://127.0.0.1:{store_wire.port}"} if store_wire else {}
    if bus_wire:
        wired["ZELDA_BUS__URL"] = f"nats://127.0.0.1:{bus_wire.port}"
    settings = {
        name: {**wired, **HASTE.get(name, {}), **EXPORTS.get(name, {}), **extra.get(name, {})} for name in SERVICES
    }
    system = prepare(Options(root=root, extra=settings), said.append)
    if store_wire:
        store_wire.target = system.addresses.store or 0
    if bus_wire:
        bus_wire.target = system.addresses.bus
    async with kept(system):
        yield Stage(system, store_of(system.settings), said)
