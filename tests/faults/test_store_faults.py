"""Faults of a real S3 server: killed, paused, restarted. Calls time out; a service stays up and loses nothing."""

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.bus.jetstream.bus import NatsBus, connect
from shared.bus.provision import provision as provision_bus
from shared.bus.topology import JUDGE_SEGMENTS, REWARDMODEL_SCORES
from shared.errors import Transient
from shared.store.open import open_store
from shared.store.provision import provision
from tests.events import segment_ready
from tests.faults.stub_process import stub_service
from tests.servers import NatsServer, S3Server, when_back

KEY = "models/runs/demo/summary.json"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    """A provisioned S3 server of the test's own."""
    (tmp_path / "s3").mkdir()
    with S3Server(tmp_path / "s3") as own:
        provision(own.settings("faults"))
        yield own


async def test_a_killed_store_raises_transient_and_loses_nothing(server: S3Server) -> None:
    store = open_store(server.settings("faults"))
    digests = {number: await store.create(f"models/runs/demo/{number}", b"%d" % number) for number in range(50)}
    server.kill()
    started = time.monotonic()
    for call in (store.get(KEY), store.put(KEY, b"x"), store.create(KEY, b"x"), store.list("models/")):
        with pytest.raises(Transient):
            await call
    assert time.monotonic() - started < 4 * 15
    server.start()
    await when_back(lambda: store.put(KEY, b"again"))
    for number, digest in digests.items():
        assert await store.get(f"models/runs/demo/{number}", digest) == b"%d" % number


async def test_a_paused_store_blocks_no_call_beyond_fifteen_seconds(server: S3Server) -> None:
    store = open_store(server.settings("faults"))
    await store.put(KEY, b"x")
    server.signal(signal.SIGSTOP)
    started = time.monotonic()
    calls = (store.get(KEY), store.put(KEY, b"y"), store.create("models/new", b"y"), store.list("models/"))
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    took = time.monotonic() - started
    server.signal(signal.SIGCONT)
    assert all(isinstance(outcome, Transient) for outcome in outcomes), outcomes
    assert took < 15.5
    await when_back(lambda: store.put(KEY, b"again"))


async def _drained(bus: NatsBus, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while await bus.pending(JUDGE_SEGMENTS) > 0:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)


@pytest.mark.slow
async def test_a_service_survives_a_store_outage_and_finishes_every_segment(server: S3Server, tmp_path: Path) -> None:
    settings = server.settings("faults")
    with NatsServer(tmp_path) as nats:
        await provision_bus(nats.settings)
        bus = await connect(nats.settings, "test")
        async with stub_service(nats.url, settings, tmp_path / "service.log") as process:
            for number in range(10):
                await bus.publish(segment_ready(number))
            await _drained(bus, 20)
            server.kill()
            for number in range(10, 30):
                await bus.publish(segment_ready(number))
            await asyncio.sleep(15)
            assert process.returncode is None
            server.start()
            await _drained(bus, 30)
        assert await bus.pending(REWARDMODEL_SCORES) == 30
        assert (await bus.context.stream_info("ZELDA_DEAD")).state.messages == 0
        assert len(await open_store(settings).list("episodes/scores/demo/")) == 30
        await bus.close()
