"""Provisioning makes a real nats-server equal to the topology, and services refuse one that differs from it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from nats.js.api import ConsumerConfig
from structlog.testing import capture_logs

from shared.bus.jetstream import former_consumers
from shared.bus.jetstream.bus import NatsBus, connect
from shared.bus.jetstream.config import consumer_config
from shared.bus.jetstream.pull_consumer import PullConsumer
from shared.bus.port import ConsumerMissing, Subscription
from shared.bus.provision import provision
from shared.bus.subjects import pattern
from shared.bus.topology import EXPORTER_SEGMENTS, JUDGE_SEGMENTS, SEGMENTS, stream_of
from shared.contracts.events import RmTrained, SegmentReady
from shared.errors import Fatal
from tests.events import segment_ready
from tests.servers import NatsServer


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[NatsBus]:
    """A provisioned bus."""
    await provision(nats_server.settings)
    opened = await connect(nats_server.settings, "contract")
    yield opened
    await opened.close()


async def test_a_bus_without_streams_is_refused_until_it_is_provisioned(nats_server: NatsServer) -> None:
    empty = await connect(nats_server.settings, "contract")
    with pytest.raises(Fatal, match=r"stream ZELDA_SEGMENTS is missing: run `python -m shared\.bus\.provision`"):
        await empty.ensure(JUDGE_SEGMENTS)
    await provision(nats_server.settings)
    await empty.ensure(JUDGE_SEGMENTS)
    await empty.close()


async def test_a_stream_that_differs_is_refused_until_it_is_provisioned(bus: NatsBus, nats_server: NatsServer) -> None:
    actual: Any = (await bus.context.stream_info(SEGMENTS.name)).config
    await bus.context.update_stream(actual.evolve(max_bytes=8_000))
    found = (
        rf"stream ZELDA_SEGMENTS differs from its declaration \(max_bytes: declared {SEGMENTS.max_bytes}, found 8000\)"
    )
    with pytest.raises(Fatal, match=found):
        await bus.ensure(JUDGE_SEGMENTS)
    await provision(nats_server.settings)
    await bus.ensure(JUDGE_SEGMENTS)


async def test_a_consumer_that_differs_is_refused_until_it_is_provisioned(
    bus: NatsBus, nats_server: NatsServer
) -> None:
    declared = consumer_config(JUDGE_SEGMENTS, [pattern(SegmentReady)])
    await bus.context.add_consumer(SEGMENTS.name, declared.evolve(max_ack_pending=7))
    with pytest.raises(Fatal, match=r"consumer judge-segments differs .*max_ack_pending: declared 1000, found 7"):
        await bus.ensure(JUDGE_SEGMENTS)
    await provision(nats_server.settings)
    await bus.ensure(JUDGE_SEGMENTS)


async def test_a_service_that_is_not_deployed_has_no_consumer(bus: NatsBus, nats_server: NatsServer) -> None:
    await provision(nats_server.settings, without=["exporter"])
    with pytest.raises(ConsumerMissing, match="exporter-segments"):
        await bus.pending(EXPORTER_SEGMENTS)
    assert await bus.pending(JUDGE_SEGMENTS) == 0


NEWER = Subscription("newer-segments", (SegmentReady,))
"""What a newer version of the product reads, and this one does not."""


async def names(bus: NatsBus) -> set[str]:
    """The consumers of the segments' stream."""
    return {consumer.name for consumer in await bus.context.consumers_info(SEGMENTS.name)}


async def add(bus: NatsBus, config: ConsumerConfig) -> None:
    """Add a consumer to the segments' stream."""
    await bus.context.add_consumer(SEGMENTS.name, config)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Provisioning that waits for readers in hundredths of the time."""
    for name in ("READER_S", "QUIET_S", "POLL_S"):
        monkeypatch.setattr(former_consumers, name, getattr(former_consumers, name) / 20)


async def test_a_consumer_of_a_newer_version_is_removed_and_logged(
    bus: NatsBus, nats_server: NatsServer, hasty: None
) -> None:
    await add(bus, consumer_config(NEWER, [pattern(SegmentReady)]))
    with capture_logs() as lines:
        await provision(nats_server.settings)
    assert await names(bus) == {"judge-segments", "exporter-segments", "rewardmodel-scores"}
    assert {"consumer": "newer-segments", "stream": "ZELDA_SEGMENTS"}.items() <= lines[0].items()
    assert lines[0]["event"] == "consumer removed"
    await bus.publish(segment_ready())
    for subscription in (JUDGE_SEGMENTS, EXPORTER_SEGMENTS):
        (delivery,) = await bus.fetch(subscription, 1, 2)
        await delivery.ack()
    assert (await bus.context.stream_info(SEGMENTS.name)).state.messages == 0  # nothing keeps the event


async def test_a_consumer_of_another_application_is_kept(bus: NatsBus, nats_server: NatsServer, hasty: None) -> None:
    for name in ("archive", "judge-mirror", "zelda-tap"):
        foreign = consumer_config(NEWER, [pattern(SegmentReady)]).evolve(name=name, durable_name=name, metadata=None)
        await add(bus, foreign)
    await provision(nats_server.settings)
    assert {"archive", "judge-mirror", "zelda-tap"} < await names(bus)


async def test_a_consumer_that_is_read_is_kept_and_logged(bus: NatsBus, nats_server: NatsServer, hasty: None) -> None:
    await add(bus, consumer_config(NEWER, [pattern(SegmentReady)]))
    reader = PullConsumer(bus.context._nc, SEGMENTS.name, NEWER.name)

    async def read() -> None:
        while True:
            await reader.fetch(1, 0.5)

    reading = asyncio.create_task(read())
    with capture_logs() as lines:
        await provision(nats_server.settings)
    reading.cancel()
    assert "newer-segments" in await names(bus)
    assert lines[-1]["consumers"] == ["newer-segments"]
    assert "provision again" in lines[-1]["event"]


def test_events_of_one_subscription_come_from_one_stream() -> None:
    mixed = Subscription("mixed", (SegmentReady, RmTrained))
    with pytest.raises(ValueError, match="no single stream holds them; split it"):
        stream_of(mixed)
