"""Restarts a server that answers its probe and refuses work, as SeaweedFS and NATS do after a disk was full.

The guard writes as a client does. While the disk is full it waits: a restart would not help. Once there is space again
it restarts the server in any case. SeaweedFS spreads its index over eight databases, and each of them that met the full
disk refuses writes until it is opened again, while the guard's own object may lie in another one. A stream of NATS that
met the full disk repeats its first error ("no space left on device") until it is opened again, while the account that
the guard asks for answers all the time.
"""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cli.stack.connections import bus_settings, local_store
from cli.stack.process import SupervisedProcess
from cli.stack.servers import OPERATOR, SPACE_MB
from shared.bus.jetstream.bus import AWAY, connect
from shared.errors import Transient, ZeldaError
from shared.store import keys
from shared.store.port import Store

INTERVAL_S: Final = 5.0
ATTEMPT_S: Final = 10.0  # a server that gives no answer counts as one that refuses
REFUSED_S: Final = 15.0  # a restarted or busy server refuses some writes; a longer refusal does not end alone
PATIENCE_S: Final = 45.0  # after a restart, before the next one

Attempt = Callable[[], Awaitable[None]]
"""Makes a server store something; raises ZeldaError or OSError when the server refuses it."""


@dataclass(slots=True)
class ServerGuard:
    """Watches one server. `clock` is in seconds, `free_mb` the space of its disk in megabytes."""

    server: SupervisedProcess
    attempt: Attempt
    free_mb: Callable[[], float]
    clock: Callable[[], float] = time.monotonic
    _refused_since: float | None = None
    _met_full_disk: bool = False
    _disk_reported: bool = False
    _restarted: bool = False
    _not_before: float = 0.0

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            await self.check()

    async def check(self) -> None:
        """Make one attempt; restart the server when attempts have failed for too long though there is space."""
        name, began, free = self.server.spec.name, self.clock(), self.free_mb()
        if free < SPACE_MB:
            self._met_full_disk, self._restarted = True, False
        try:
            async with asyncio.timeout(ATTEMPT_S):
                await self.attempt()
        except (ZeldaError, OSError, TimeoutError) as error:
            now = self.clock()
            self._refused_since = began if self._refused_since is None else self._refused_since
            refused = now - self._refused_since
            if free < SPACE_MB:
                self._report_disk(name, free)
            elif refused >= REFUSED_S and now >= self._not_before:
                self._restart(f"{name} refuses to store for {refused:.0f} s ({_reason(error)}); restarting it")
            return
        self._refused_since = None
        if self._met_full_disk and free >= SPACE_MB:
            self._after_full_disk(name)

    def _after_full_disk(self, name: str) -> None:
        if self._restarted:
            self.server.report(f"{name} stores again.")
            self._met_full_disk = self._disk_reported = self._restarted = False
        else:
            self._restart(f"{name} has space again; restarting it, because parts of it refuse to store until then")

    def _report_disk(self, name: str, free: float) -> None:
        if not self._disk_reported:
            self.server.report(f"{name} cannot store: its disk has {free:.0f} MB left; free some space.")
        self._disk_reported = True

    def _restart(self, reason: str) -> None:
        """Say why and end the process; its supervisor starts it again."""
        self.server.report(reason)
        self._not_before, self._restarted = self.clock() + PATIENCE_S, True
        if self.server.process is not None and self.server.exit_code is None:
            self.server.process.send_signal(signal.SIGKILL)  # both servers recover from it; SIGTERM may hang


def _reason(error: Exception) -> str:
    return str(error) or f"no answer in {ATTEMPT_S:.0f} s"


def guard_servers(
    servers: Sequence[SupervisedProcess], settings: Mapping[str, str], directory: Path
) -> list[Coroutine[Any, Any, None]]:
    """Coroutines that guard bus and store, whose files are below `directory`."""
    attempts: dict[str, Attempt] = {"store": _store_attempt(local_store(settings)), "bus": _bus_attempt(settings)}

    def free_mb() -> float:
        return shutil.disk_usage(directory).free / 1e6

    return [
        ServerGuard(server, attempts[server.spec.name], free_mb).run()
        for server in servers
        if server.spec.name in attempts
    ]


def _store_attempt(store: Store) -> Attempt:
    async def put() -> None:
        await store.put(keys.PROBE, os.urandom(4_096))  # random: an equal or empty object could be answered from memory

    return put


def _bus_attempt(settings: Mapping[str, str]) -> Attempt:
    """Ask JetStream, which stops working on its own when it cannot write, while the server still answers."""

    async def ask() -> None:
        bus = await connect(bus_settings(settings), OPERATOR)
        try:
            await bus.context.account_info()
        except AWAY as error:
            raise Transient(str(error) or "no answer") from error
        finally:
            await bus.close()

    return ask
