"""A service's life after its settings are known: probes up, connect, check the topology, work, drain, leave.

The order of the end matters: not ready, stop fetching, finish or give back, drain the service, close the bus.
"""

import asyncio
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
from shared.runtime.health import NOT_FOUND, Health, serve
from shared.runtime.service import Service, ServicePorts
from shared.store.open import open_store
from shared.store.port import Store
from shared.telemetry import metrics

CONNECT_S: Final = 60.0
STORE_PROBE_S: Final = 20.0
STORE_SILENT_S: Final = 60.0  # longer than this without an answer and the service is not ready
SETTLED_S: Final = 60.0  # a background job that ran for longer fails anew, not again
PROBE_KEY: Final = "models/probe"
EXIT_FATAL, EXIT_CONNECT, EXIT_TOPOLOGY, EXIT_CLOSED = 1, 3, 4, 6

RESTARTS: Final = metrics.counter("service_background_restarts_total", "failed background jobs started again", ["job"])
BUILD: Final = metrics.gauge("build_info", "always 1; what runs here", ["service", "version"])
S = TypeVar("S", bound=ServiceSettings)
T = TypeVar("T")
log = structlog.get_logger(__name__)


class ConnectionClosed(Fatal):
    """The bus client gave up; only a new process connects again."""


class _Leave(Exception):
    """Ends the life early with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ServiceRunner(Generic[S]):
    """One run of one service."""

    def __init__(self, name: str, settings: S, stop: asyncio.Event, connect_s: float = CONNECT_S) -> None:
        self._name, self._settings, self._stop, self._connect_s = name, settings, stop, connect_s
        self._health = Health(not_ready=[lambda: "starting"])
        self._store_answered = time.monotonic()

    async def run(self, build: Callable[[S, ServicePorts], Awaitable[Service]], listener: socket.socket) -> int:
        """Live, and return the exit code."""
        BUILD.labels(self._name, version("zelda-rlaif")).set(1)
        async with serve(self._health, listener):
            log.info("started", address="{}:{}".format(*listener.getsockname()[:2]))
            try:
                return await self._live(build)
            except _Leave as leave:
                return leave.code

    async def _live(self, build: Callable[[S, ServicePorts], Awaitable[Service]]) -> int:
        ports = await self._connected()
        try:
            # A build may read the store: what is Transient there is tried again, what is Fatal ends it with a sentence.
            service = await self._reach("service", lambda: _built(build, self._settings, ports))
            for consumer in service.consumers:
                await self._reach("topology", partial(ports.bus.ensure, consumer.subscription))
            return await self._work(ports, service)
        finally:
            await ports.bus.close()

    async def _connected(self) -> ServicePorts:
        """Bus and store, both having answered."""
        bus: Bus = await self._reach("bus", lambda: open_bus(self._settings.bus, self._name))
        try:
            store = await self._reach("store", lambda: _opened(self._settings.store))
        except _Leave:
            await bus.close()
            raise
        return ServicePorts(bus, store, self._stop)

    async def _reach(self, what: str, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Repeat `attempt` until it succeeds, the time is over (exit 3), it is fatal, or the service has to end."""
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
                    log.error("not reached", what=what, seconds=self._connect_s, error=str(error))
                    raise _Leave(EXIT_CONNECT) from error
                log.warning("waiting", what=what, error=str(error))
            except Fatal as error:
                log.error("refused", what=what, error=str(error))
                raise _Leave(EXIT_TOPOLOGY if what == "topology" else EXIT_FATAL) from error
            await _sleep_until(self._stop, pause)
            pause = min(pause * 2, 2.0)
        raise _Leave(0)

    async def _work(self, ports: ServicePorts, service: Service) -> int:
        outage = OutageDetector(partial(_answers, ports.store))
        loops = [
            ConsumerLoop(ports.bus, consumer, drain_s=service.drain_s, outage=outage) for consumer in service.consumers
        ]
        self._watch_health(ports, service, loops)
        code = 0
        try:
            async with asyncio.TaskGroup() as group:
                jobs = [group.create_task(self._supervised(job)) for job in (*service.background, self._probe(ports))]
                jobs.append(group.create_task(_closed(ports.bus)))
                consuming = [group.create_task(loop.run(self._stop)) for loop in loops]
                log.info("ready", consumers=[loop.name for loop in loops])
                await self._stop.wait()
                await self._drained(service, consuming)
                for job in jobs:
                    job.cancel()
        except* Fatal as errors:
            code = _report(errors)
        else:
            log.info("drained")
        return code

    async def _drained(self, service: Service, consuming: list[asyncio.Task[None]]) -> None:
        self._health.not_ready.insert(0, lambda: "draining")
        deadline = time.monotonic() + service.drain_s
        if consuming:
            await asyncio.wait(consuming)
        if service.drain is None:
            return
        try:
            async with asyncio.timeout(max(1.0, deadline - time.monotonic())):
                await service.drain()
        except TimeoutError:
            log.warning("drain not finished", budget_s=service.drain_s)
        except Transient as error:  # the store is away; a lease that was not given back expires
            log.warning("drain not finished", error=str(error))

    async def _supervised(self, job: Callable[[], Awaitable[None]]) -> None:
        pause, name = 1.0, getattr(job, "__qualname__", type(job).__name__)
        RESTARTS.labels(name)  # says 0 until then: Prometheus sees no growth in a series that begins at 1
        while True:
            started = time.monotonic()
            try:
                await job()
            except Fatal:
                raise
            except Exception as error:  # a background job must not take the whole service down with one bad moment
                pause = 1.0 if time.monotonic() - started > SETTLED_S else pause
                RESTARTS.labels(name).inc()
                log.error("background job failed", job=name, retry_s=pause, exc_info=error)
            else:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, 30.0)

    def _watch_health(self, ports: ServicePorts, service: Service, loops: list[ConsumerLoop]) -> None:
        def store_silent() -> str | None:
            silent = time.monotonic() - self._store_answered
            return f"store silent for {silent:.0f} s" if silent > STORE_SILENT_S else None

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
                if await _answers(ports.store):
                    self._store_answered = time.monotonic()
                await asyncio.sleep(STORE_PROBE_S)

        return probe_store


async def _built(build: Callable[[S, ServicePorts], Awaitable[Service]], settings: S, ports: ServicePorts) -> Service:
    return await build(settings, ports)


async def _opened(settings: StoreSettings) -> Store:
    store = open_store(settings)
    await store.exists(PROBE_KEY)
    return store


async def _answers(store: Store) -> bool:
    try:
        await store.exists(PROBE_KEY)
    except Transient as error:
        log.warning("store not answering", error=str(error))
        return False
    return True


async def _closed(bus: Bus) -> None:
    """Raise as soon as the bus's client has given up."""
    await bus.closed.wait()
    raise ConnectionClosed("the bus closed the connection for good: the process has to connect anew")


async def _sleep_until(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return


def _report(errors: BaseExceptionGroup[Fatal]) -> int:
    code = EXIT_FATAL
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            code = max(code, _report(error))
            continue
        log.error("fatal", error=str(error))
        code = max(code, EXIT_CLOSED if isinstance(error, ConnectionClosed) else EXIT_FATAL)
    return code
