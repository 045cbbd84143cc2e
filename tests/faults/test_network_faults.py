"""Networks that delay, cut and go silent, a bus that is gone for longer than anybody waits, a store that errs: no loss.

A segment is lost if it has no score, doubled if it is announced twice, dead if it was given up; none may be.
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
class Ends:
    """The two servers, and the test's own undisturbed way to them."""

    nats: NatsServer
    store: StoreSettings
    bus: NatsBus

    async def publish(self, first: int, last: int) -> None:
        """Announce segments, as a trainer would."""
        for number in range(first, last):
            await self.bus.publish(segment_ready(number))

    async def drained(self, seconds: float) -> float:
        """Wait until every segment is answered; how long it took."""
        started = time.monotonic()
        while await self.bus.pending(JUDGE_SEGMENTS) > 0:
            assert time.monotonic() - started < seconds, f"{await self.bus.pending(JUDGE_SEGMENTS)} segments left"
            await asyncio.sleep(0.1)
        return time.monotonic() - started

    async def each_once(self, number: int) -> None:
        """So many scores, announced once each, and no dead letter."""
        assert len(await open_store(self.store).list("episodes/scores/demo/")) == number
        assert await self.bus.pending(REWARDMODEL_SCORES) == number
        assert (await self.bus.context.stream_info("ZELDA_DEAD")).state.messages == 0


@pytest.fixture
async def ends(tmp_path: Path) -> AsyncIterator[Ends]:
    """A bus and a store of the test's own, provisioned."""
    for name in ("nats", "s3"):
        (tmp_path / name).mkdir()
    with NatsServer(tmp_path / "nats") as nats, S3Server(tmp_path / "s3") as s3:
        settings = s3.settings("wires")
        provision_store(settings)
        await provision_bus(nats.settings)
        bus = await connect(nats.settings, "test")
        yield Ends(nats, settings, bus)
        await bus.close()


def through(proxy: FaultProxy, settings: StoreSettings) -> StoreSettings:
    """The same store by way of the proxy."""
    proxy.target_port = int(str(settings.endpoint).rpartition(":")[2])
    return settings.model_copy(update={"endpoint": f"http://127.0.0.1:{proxy.port}"})


async def test_delays_resets_and_half_open_connections_lose_nothing(ends: Ends, tmp_path: Path) -> None:
    async with serve_proxy(FaultProxy(ends.nats.port, seed=1)) as to_bus, serve_proxy(FaultProxy(seed=2)) as to_store:
        store = through(to_store, ends.store)
        url = f"nats://127.0.0.1:{to_bus.port}"
        async with stub_service(url, store, tmp_path / "log", ZELDA_STUB__WORK_S="0.1"):
            await ends.publish(0, 10)
            await ends.drained(30)
            to_bus.delay = to_store.delay = (0.0, 0.2)
            to_store.fault_rate = 0.05
            for step in range(4):
                await ends.publish(10 + 20 * step, 30 + 20 * step)
                await asyncio.sleep(1.0)
                to_bus.reset_connections()
                to_store.reset_connections()
            to_bus.half_open()
            to_store.half_open()
            await ends.drained(60)
        assert to_store.faults.total() > 0
        await ends.each_once(90)


async def test_the_service_recovers_from_a_bus_outage_beyond_all_timeouts(ends: Ends, tmp_path: Path) -> None:
    """Longer than a publish is tried (16 s), than a connection is attempted, than an unanswered event is held."""
    async with stub_service(ends.nats.url, ends.store, tmp_path / "log", ZELDA_STUB__WORK_S="2") as service:
        await ends.publish(0, 8)
        await ends.drained(30)
        before = memory_mb(service)
        await ends.publish(8, 40)
        await asyncio.sleep(1.0)  # the first eight are in work
        ends.nats.kill()
        await asyncio.sleep(ACK_WAIT_S + 5)
        assert service.returncode is None
        assert memory_mb(service) - before < 20
        ends.nats.start()
        # What was in work is judged by now and only has to be announced; the other 24 are three rounds of two seconds.
        await ends.drained(45)
    await ends.each_once(40)


async def test_a_store_failing_one_request_in_twenty_changes_no_epoch(tmp_path: Path) -> None:
    """503, lost answers, cut bodies and silence, for every service and the recorder, from the first request on."""
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
        account = EpochFinishedRecord.from_bytes(await ring.store.get(keys.epoch_finished(RUN, 0)))
        assert account.segments_dropped == 0
        assert proxy.faults.total() > 10
        assert ring.messages == []  # nobody had to be started again
