"""Network delays, resets and silence, a long bus outage and a failing store lose nothing.

No segment may be lost (without a score), duplicated (announced twice) or dead-lettered.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from shared.bus.jetstream.bus import NatsBus, connect
from shared.bus.provision import provision as provision_bus
from shared.bus.topology import ACK_WAIT_S, JUDGE_SEGMENTS, REWARDMODEL_SCORES
from shared.config.settings import StoreSettings
from shared.contracts.epoch import EpochFinishedRecord
from shared.store import keys
from shared.store.open import open_store
from shared.store.provision import provision as provision_store
from tests.events import segment_ready
from tests.faults.fault_proxy import FaultProxy, serve_proxy
from tests.faults.live_system import RUN, live_system
from tests.faults.stub_process import memory_mb, stub_service
from tests.servers import NatsServer, S3Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@dataclass
class Servers:
    """The two servers, and the test's own direct connection to them."""

    nats: NatsServer
    store: StoreSettings
    bus: NatsBus

    async def publish(self, first: int, last: int) -> None:
        """Publish `segment.ready`, as a trainer does."""
        for number in range(first, last):
            await self.bus.publish(segment_ready(number))

    async def wait_until_drained(self, seconds: float) -> float:
        """Wait until every segment is acknowledged; return the seconds that took."""
        started = time.monotonic()
        while await self.bus.pending(JUDGE_SEGMENTS) > 0:
            assert time.monotonic() - started < seconds, f"{await self.bus.pending(JUDGE_SEGMENTS)} segments left"
            await asyncio.sleep(0.1)
        return time.monotonic() - started

    async def assert_each_scored_once(self, number: int) -> None:
        """Assert that `number` scores exist and were announced once each, without dead letters."""
        assert len(await open_store(self.store).list("episodes/scores/demo/")) == number
        assert await self.bus.pending(REWARDMODEL_SCORES) == number
        assert (await self.bus.context.stream_info("ZELDA_DEAD")).state.messages == 0


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    """A provisioned bus and store of the test's own."""
    for name in ("nats", "s3"):
        (tmp_path / name).mkdir()
    with NatsServer(tmp_path / "nats") as nats, S3Server(tmp_path / "s3") as s3:
        settings = s3.settings("wires")
        provision_store(settings)
        await provision_bus(nats.settings)
        bus = await connect(nats.settings, "test")
        yield Servers(nats, settings, bus)
        await bus.close()


def through(proxy: FaultProxy, settings: StoreSettings) -> StoreSettings:
    """Settings that reach the store through the proxy."""
    proxy.target_port = int(str(settings.endpoint).rpartition(":")[2])
    return settings.model_copy(update={"endpoint": f"http://127.0.0.1:{proxy.port}"})


async def test_delays_resets_and_half_open_connections_lose_nothing(servers: Servers, tmp_path: Path) -> None:
    async with (
        serve_proxy(FaultProxy(servers.nats.port, seed=1)) as to_bus,
        serve_proxy(FaultProxy(seed=2)) as to_store,
    ):
        store = through(to_store, servers.store)
        url = f"nats://127.0.0.1:{to_bus.port}"
        async with stub_service(url, store, tmp_path / "log", ZELDA_STUB__WORK_S="0.1"):
            await servers.publish(0, 10)
            await servers.wait_until_drained(30)
            to_bus.delay = to_store.delay = (0.0, 0.2)
            to_store.fault_rate = 0.05
            for step in range(4):
                await servers.publish(10 + 20 * step, 30 + 20 * step)
                await asyncio.sleep(1.0)
                to_bus.reset_connections()
                to_store.reset_connections()
            to_bus.half_open()
            to_store.half_open()
            await servers.wait_until_drained(60)
        assert to_store.faults.total() > 0
        await servers.assert_each_scored_once(90)


async def test_the_service_recovers_from_a_bus_outage_beyond_all_timeouts(servers: Servers, tmp_path: Path) -> None:
    """The outage exceeds the publish retries (16 s), the connection attempts and the acknowledgement timeout."""
    async with stub_service(servers.nats.url, servers.store, tmp_path / "log", ZELDA_STUB__WORK_S="2") as service:
        await servers.publish(0, 8)
        await servers.wait_until_drained(30)
        before = memory_mb(service)
        await servers.publish(8, 40)
        await asyncio.sleep(1.0)  # the first eight are in progress
        servers.nats.kill()
        await asyncio.sleep(ACK_WAIT_S + 5)
        assert service.returncode is None
        assert memory_mb(service) - before < 20
        servers.nats.start()
        # The segments in progress are judged and only need announcing; the other 24 take three rounds of two seconds.
        await servers.wait_until_drained(45)
    await servers.assert_each_scored_once(40)


async def test_a_store_failing_one_request_in_twenty_changes_no_epoch(tmp_path: Path) -> None:
    """503, lost responses, truncated bodies and silence, for every service and the recorder, from the first request."""
    async with (
        serve_proxy(FaultProxy(seed=3, fault_rate=0.05)) as proxy,
        live_system(tmp_path, store_proxy=proxy) as ring,
    ):
        await ring.start_run(epochs=1)
        assert await ring.wait_for_end(300) == "finished"
        found = await ring.audit()
        assert found.violations() == []
        assert len(found.acknowledged) == len(found.scores) > 0
        assert {status for status, _ in found.scores.values()} == {"judged"}
        finished = EpochFinishedRecord.from_bytes(await ring.store.get(keys.epoch_finished(RUN, 0)))
        assert finished.segments_dropped == 0
        assert proxy.faults.total() > 10
        assert ring.messages == []  # no process was restarted
