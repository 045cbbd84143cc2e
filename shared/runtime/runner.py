"""Runs a service once its settings are known: serve probes, connect, check the topology, work, drain, exit.

The order of the shutdown matters: not ready, stop fetching, finish or give back, drain the service, close the bus.
"""

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from importlib.metadata import version
from typing import Any, Final, Generic, TypeVar

import structlog

from shared.bus.consumer_loop import ConsumerLoop
from shared.bus.open import open_bus
from shared.bus.outage import OutageDetector
from shared.bus.port import Bus
from shared.config.settings import ServiceSettings, StoreSettings
from shared.errors import Fatal, Transient
from shared.process.event_wait import wait_for_event
from shared.process.exits import EXIT_TOPOLOGY
from shared.runtime.health import NOT_FOUND, Health, address_of, serve
from shared.runtime.service import Service, ServicePorts
from shared.store import keys
from shared.store.open import open_store
from shared.store.port import Store
from shared.telemetry import metrics

CONNECT_S: Final = 60.0
STORE_PROBE_S: Final = 20.0
PROBE_BYTES: Final = 16
STORE_SILENT_S: Final = 60.0  # a store that accepted no write for longer makes the service not ready
SETTLED_S: Final = 60.0  # a job that ran longer restarts with the shortest pause
EXIT_FATAL, EXIT_CONNECT, EXIT_CLOSED = 1, 3, 6

RESTARTS: Final = metrics.counter("service_background_restarts_total", "restarts of failed background jobs", ["job"])
BUILD: Final = metrics.gauge("build_info", "always 1; what runs here", ["service", "version"])
LAST_WRITE: Final = metrics.gauge(
    "store_last_write_timestamp_seconds", "when the store last accepted this process's probe, a small write"
)
S = TypeVar("S", bound=ServiceSettings)
T = TypeVar("T")
log = structlog.get_logger(__name__)


class ConnectionClosed(Fatal):
    """The bus client gave up; only a new process can reconnect."""


class _EarlyExit(Exception):
    """Ends the run early with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ServiceRunner(Generic[S]):
    """One run of one service."""

    def __init__(self, name: str, settings: S, stop: asyncio.Event, connect_s: float = CONNECT_S) -> None:
        self._name, self._settings, self._stop, self._connect_s = name, settings, stop, connect_s
        self._health = Health(not_ready=[lambda: "starting"])
        self._store_accepted = time.monotonic()

    async def run(self, build: Callable[[S, ServicePorts], Awaitable[Service]], listener: socket.socket) -> int:
        """Run until the stop, and return the exit code."""
        BUILD.labels(self._name, version("zelda-rlaif")).set(1)
        async with serve(self._health, listener):
            log.info("service started", address=address_of(listener))
            try:
                return await self._run_connected(build)
            except _EarlyExit as early:
                return early.code

    async def _run_connected(self, build: Callable[[S, ServicePorts], Awaitable[Service]]) -> int:
        ports = await self._connect()
        try:
            # A build may read the store: Transient errors are retried, Fatal ones end the process with a sentence.
            service = await self._retry("service", lambda: _build(build, self._settings, ports))
            for consumer in service.consumers:
                await self._retry("topology", partial(ports.bus.ensure, consumer.subscription))
            return await self._consume(ports, service)
        finally:
            await ports.bus.close()

    async def _connect(self) -> ServicePorts:
        """Bus and store, after both have answered."""
        bus: Bus = await self._retry("bus", lambda: open_bus(self._settings.bus, self._name))
        try:
            store = await self._retry("store", lambda: _open_store(self._settings.store))
        except _EarlyExit:
            await bus.close()
            raise
        return ServicePorts(bus, store, self._stop)

    async def _retry(self, what: str, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Repeat `attempt` until it succeeds, the time is over (exit 3), it fails fatally, or the service must stop."""
        deadline = time.monotonic() + self._connect_s
        pause = 0.1
        while not self._stop.is_set():
            try:
                async with asyncio.timeout_at(
                    asyncio.get_running_loop().time() + max(0.1, deadline - time.monotonic())
                ):
                    return await attempt()
            except (Transient, TimeoutError) as error:
                if time.monotonic() + pause > deadline:
                    log.error("connection failed", target=what, seconds=self._connect_s, error=str(error))
                    raise _EarlyExit(EXIT_CONNECT) from error
                log.warning("connection retried", target=what, error=str(error))
            except Fatal as error:
                log.error("connection refused", target=what, error=str(error))
                raise _EarlyExit(EXIT_TOPOLOGY if what == "topology" else EXIT_FATAL) from error
            await wait_for_event(self._stop, pause)
            pause = min(pause * 2, 2.0)
        raise _EarlyExit(0)

    async def _consume(self, ports: ServicePorts, service: Service) -> int:
        outage = OutageDetector(partial(_store_available, ports.store))
        drain_s = self._settings.shutdown.drain_s or service.drain_s
        loops = [ConsumerLoop(ports.bus, consumer, drain_s=drain_s, outage=outage) for consumer in service.consumers]
        self._configure_probes(ports, service, loops)
        LAST_WRITE.set_to_current_time()  # an alert measures the time from here, also if no write ever succeeds
        code = 0
        try:
            async with asyncio.TaskGroup() as group:
                jobs = [group.create_task(self._supervise(job)) for job in (*service.background, self._probe(ports))]
                jobs.append(group.create_task(_raise_when_closed(ports.bus)))
                consuming = [group.create_task(loop.run(self._stop)) for loop in loops]
                log.info("service ready", consumers=[loop.name for loop in loops])
                await self._stop.wait()
                await self._drain(service, consuming, drain_s)
                for job in jobs:
                    job.cancel()
        except* Fatal as errors:
            code = _log_fatal(errors)
        else:
            log.info("service drained")
        return code

    async def _drain(self, service: Service, consuming: list[asyncio.Task[None]], drain_s: float) -> None:
        self._health.not_ready.insert(0, lambda: "draining")
        deadline = time.monotonic() + drain_s
        if consuming:
            await asyncio.wait(consuming)
        if service.drain is None:
            return
        try:
            async with asyncio.timeout(max(1.0, deadline - time.monotonic())):
                await service.drain()
        except TimeoutError:
            log.warning("drain cut off", budget_s=drain_s)
        except Transient as error:  # the store is away; an unreleased lease expires
            log.warning("drain failed", error=str(error))

    async def _supervise(self, job: Callable[[], Awaitable[None]]) -> None:
        pause, name = 1.0, getattr(job, "__qualname__", type(job).__name__)
        RESTARTS.labels(name)  # exported as 0: Prometheus sees no increase in a series that begins at 1
        while True:
            started = time.monotonic()
            try:
                await job()
            except Fatal:
                raise
            except Exception as error:  # one failure of a background job must not end the service
                pause = 1.0 if time.monotonic() - started > SETTLED_S else pause
                RESTARTS.labels(name).inc()
                log.error("background job failed", job=name, retry_s=pause, exc_info=error)
            else:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, 30.0)

    def _configure_probes(self, ports: ServicePorts, service: Service, loops: list[ConsumerLoop]) -> None:
        def store_silent() -> str | None:
            silent = time.monotonic() - self._store_accepted
            if silent <= STORE_SILENT_S:
                return None
            return f"store accepted no write for {silent:.0f} s: it is away, its disk is full, or it needs a restart"

        self._health.app = service.app or NOT_FOUND
        self._health.not_live.append(lambda: "bus connection closed" if ports.bus.closed.is_set() else None)
        self._health.not_ready[:] = [
            lambda: None if ports.bus.connected else "bus not connected",
            store_silent,
            service.not_ready,
            *(lambda loop=loop: loop.missing for loop in loops),
        ]

    def _probe(self, ports: ServicePorts) -> Callable[[], Awaitable[None]]:
        async def probe_store() -> None:
            while True:
                if await _store_available(ports.store):
                    self._store_accepted = time.monotonic()
                    LAST_WRITE.set_to_current_time()
                await asyncio.sleep(STORE_PROBE_S)

        return probe_store


async def _build(build: Callable[[S, ServicePorts], Awaitable[Service]], settings: S, ports: ServicePorts) -> Service:
    return await build(settings, ports)


async def _open_store(settings: StoreSettings) -> Store:
    store = open_store(settings)
    await store.exists(keys.PROBE)
    return store


async def _store_available(store: Store) -> bool:
    """Whether the store accepts a write: after a full disk it may read and answer every probe, and store nothing."""
    try:
        await store.put(keys.PROBE, os.urandom(PROBE_BYTES))
    except Transient as error:
        log.warning("store unavailable", error=str(error))
        return False
    return True


async def _raise_when_closed(bus: Bus) -> None:
    """Raise ConnectionClosed when the bus client has given up."""
    await bus.closed.wait()
    raise ConnectionClosed("the bus closed the connection: only a new process can reconnect")


def _log_fatal(errors: BaseExceptionGroup[Fatal]) -> int:
    code = EXIT_FATAL
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            code = max(code, _log_fatal(error))
            continue
        log.error("service failed", error=str(error))
        code = max(code, EXIT_CLOSED if isinstance(error, ConnectionClosed) else EXIT_FATAL)
    return code
