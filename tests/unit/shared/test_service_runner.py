"""How a service ends, and which failures it survives, without servers."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import SimpleNamespace

import httpx
import pytest
from prometheus_client import REGISTRY
from starlette.responses import PlainTextResponse
from structlog.testing import capture_logs

from cli.client import error_from_response
from cli.errors import UNREACHABLE
from shared.bus.consumer import Consumer
from shared.bus.memory import MemoryBus
from shared.bus.topology import JUDGE_SEGMENTS
from shared.config.settings import BusSettings, ServiceSettings, ShutdownSettings, StoreSettings
from shared.contracts.envelope import Envelope
from shared.errors import Fatal, Transient
from shared.runtime import runner
from shared.runtime.health import address_of, listen
from shared.runtime.runner import ServiceRunner
from shared.runtime.service import Service, ServicePorts
from shared.store.memory import MemoryStore
from tests.events import segment_ready

Build = Callable[[ServiceSettings, ServicePorts], Awaitable[Service]]


async def live(build: Build, bus: str = "memory://", store: str = "memory://", drain_s: float | None = None) -> int:
    """The exit code of a service that may connect for half a second."""
    settings = ServiceSettings(
        bus=BusSettings(url=bus), store=StoreSettings(url=store), shutdown=ShutdownSettings(drain_s=drain_s)
    )
    return await asyncio.wait_for(
        ServiceRunner("judge", settings, asyncio.Event(), connect_s=0.5).run(build, listen("127.0.0.1", 0)), 10
    )


async def idle(settings: ServiceSettings, ports: ServicePorts) -> Service:
    """A service with nothing to do."""
    return Service()


async def test_unreachable_bus_ends_the_service_with_3() -> None:
    assert await live(idle, bus="nats://127.0.0.1:9") == 3


async def test_unusable_store_ends_the_service_with_1_and_a_sentence() -> None:
    with capture_logs() as lines:
        assert await live(idle, store="file:///proc/zelda") == 1
    assert "file:///proc/zelda" in lines[-1]["error"]


async def test_starting_service_answers_503_with_a_sentence_and_retry_after() -> None:
    listener, stop, connected = listen("127.0.0.1", 0), asyncio.Event(), asyncio.Event()

    async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
        await connected.wait()
        return Service(app=PlainTextResponse("the runs"))

    settings = ServiceSettings(bus=BusSettings(url="memory://"), store=StoreSettings(url="memory://"))
    living = asyncio.create_task(ServiceRunner("coordinator", settings, stop).run(build, listener))
    async with httpx.AsyncClient(base_url="http://{}:{}".format(*listener.getsockname())) as client:
        early = await client.get("/runs")
        assert early.status_code == 503
        assert early.headers["Retry-After"] == "2"
        assert early.json()["detail"] == ("The service is starting: retry in 2 seconds; /readyz gives the reason.")
        refused = error_from_response(early)
        assert (refused.code, str(refused)) == (UNREACHABLE, early.json()["detail"])
        assert (await client.get("/readyz")).json() == {"ok": False, "reasons": ["starting"]}
        assert (await client.get("/livez")).status_code == 200
        connected.set()
        while (late := await client.get("/runs")).status_code == 503:  # noqa: ASYNC110 - polling is the only way
            await asyncio.sleep(0.01)
        assert late.text == "the runs"
    stop.set()
    assert await asyncio.wait_for(living, 10) == 0


class FullStore(MemoryStore):
    """A store that answers and reads, and refuses every write while `full`, as after a full disk."""

    full = True

    async def put(self, key: str, data: bytes) -> str:
        """Write, unless it is full."""
        if self.full:
            raise Transient("store could not write: 500 InternalError")
        return await super().put(key, data)


async def test_a_store_that_only_reads_makes_the_service_unready(monkeypatch: pytest.MonkeyPatch) -> None:
    store, listener, stop = FullStore(), listen("127.0.0.1", 0), asyncio.Event()
    monkeypatch.setattr(runner, "open_store", lambda _: store)
    monkeypatch.setattr(runner, "STORE_SILENT_S", 0.2)
    monkeypatch.setattr(runner, "STORE_PROBE_S", 0.02)
    began = time.time()
    settings = ServiceSettings(bus=BusSettings(url="memory://"), store=StoreSettings(url="memory://"))
    living = asyncio.create_task(ServiceRunner("judge", settings, stop).run(idle, listener))
    async with httpx.AsyncClient(base_url="http://{}:{}".format(*listener.getsockname())) as client:

        async def reasons(ready: bool) -> list[str]:
            async with asyncio.timeout(10):
                while True:
                    answer = (await client.get("/readyz")).json()
                    if answer["ok"] == ready and answer["reasons"] != ["starting"]:
                        return [str(reason) for reason in answer["reasons"]]
                    await asyncio.sleep(0.01)

        (reason,) = await reasons(ready=False)
        assert reason.startswith("store accepted no write for ")
        refused = REGISTRY.get_sample_value("zelda_store_last_write_timestamp_seconds")
        assert refused is not None
        assert refused >= began  # an alert counts from the start of the service
        assert (await client.get("/livez")).status_code == 200  # a restart of the service would not help
        store.full = False
        assert await reasons(ready=True) == []
        accepted = REGISTRY.get_sample_value("zelda_store_last_write_timestamp_seconds")
        assert accepted is not None
        assert accepted > refused
    stop.set()
    assert await asyncio.wait_for(living, 10) == 0


async def test_fatal_handler_ends_the_service_with_1() -> None:
    async def handler(event: Envelope) -> Sequence[Envelope]:
        raise Fatal("the judge's key was withdrawn")

    async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
        await ports.bus.publish(segment_ready())
        return Service(consumers=[Consumer(JUDGE_SEGMENTS, handler)])

    assert await live(build) == 1


async def test_fatal_build_ends_the_service_with_1() -> None:
    async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
        raise Fatal("no judges are configured")

    assert await live(build) == 1


async def test_closed_connection_ends_the_service_with_6() -> None:
    async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
        asyncio.get_running_loop().call_later(0.2, ports.bus.closed.set)
        return Service()

    assert await live(build) == 6


async def test_failing_background_job_restarts_and_is_cancelled_at_the_end() -> None:
    starts, cancelled, drained = 0, False, False

    async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
        async def job() -> None:
            nonlocal starts, cancelled
            starts += 1
            if starts == 1:
                raise ValueError("one bad moment")
            ports.stopping.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled = True
                raise

        async def drain() -> None:
            nonlocal drained
            drained = not cancelled

        return Service(background=[job], drain=drain)

    assert await live(build) == 0
    assert (starts, cancelled, drained) == (2, True, True)


async def test_restart_counter_exists_before_the_first_restart() -> None:
    counted: list[float | None] = []

    async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
        async def job() -> None:
            counted.append(
                REGISTRY.get_sample_value("zelda_service_background_restarts_total", {"job": job.__qualname__})
            )
            if len(counted) == 1:
                raise ValueError("one bad moment")
            ports.stopping.set()

        return Service(background=[job])

    assert await live(build) == 0
    assert counted == [0, 1]


async def test_long_running_background_job_restarts_with_the_shortest_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts, later = 0, 0.0
    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + later))

    async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
        async def job() -> None:
            nonlocal starts, later
            starts += 1
            if starts == 2:
                later = 3_600.0  # an hour of work
            if starts < 3:
                raise ValueError("one bad moment")
            ports.stopping.set()

        return Service(background=[job])

    with capture_logs() as lines:
        assert await live(build) == 0
    assert [line["retry_s"] for line in lines if line["event"] == "background job failed"] == [1.0, 1.0]


async def test_fatal_background_job_ends_the_service_with_1() -> None:
    async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
        async def job() -> None:
            raise Fatal("no lease possible")

        return Service(background=[job])

    assert await live(build) == 1


async def test_hanging_drain_is_cut_off_by_its_budget() -> None:
    async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
        ports.stopping.set()
        return Service(drain=lambda: asyncio.sleep(60), drain_s=0.2)

    started = asyncio.get_running_loop().time()
    assert await live(build) == 0
    assert asyncio.get_running_loop().time() - started < 5


async def test_the_setting_of_the_drain_replaces_the_services_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor that allows more time than the service's own budget sets it; both consumption and drain get it."""
    bus, ended = MemoryBus(), list[str]()
    monkeypatch.setattr(runner, "open_bus", partial(_opened, bus))

    async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
        async def handler(event: Envelope) -> Sequence[Envelope]:
            ports.stopping.set()
            await asyncio.sleep(0.5)
            ended.append("work")
            return []

        async def drain() -> None:
            await asyncio.sleep(1.5)
            ended.append("drain")

        return Service([Consumer(JUDGE_SEGMENTS, handler)], drain=drain, drain_s=0.1)

    await bus.publish(segment_ready())
    assert await live(build, drain_s=5.0) == 0
    assert ended == ["work", "drain"]


async def _opened(bus: MemoryBus, settings: BusSettings, service: str) -> MemoryBus:
    return bus


async def test_drain_without_a_store_is_logged_and_ends_with_0() -> None:
    async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
        async def release() -> None:
            raise Transient("store: create 'models/lease/coordinator/7' gave no answer in 15 s")

        ports.stopping.set()
        return Service(drain=release)

    assert await live(build) == 0


@pytest.mark.parametrize("dual", [True, False], ids=["both families", "no IPv6"])
def test_all_addresses_are_served_in_the_families_there_are(dual: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not dual:
        monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    elif not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with listen("::", 0) as listener:
        port = listener.getsockname()[1]
        assert address_of(listener) == (f"[::]:{port}" if dual else f"0.0.0.0:{port}")
        for host in ("127.0.0.1", "::1") if dual else ("127.0.0.1",):
            socket.create_connection((host, port), timeout=5).close()


def test_port_is_bound_before_it_serves() -> None:
    """Two services that start together on one port: the second must not live without its probes."""
    with listen("127.0.0.1", 0) as first, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", first.getsockname()[1])
