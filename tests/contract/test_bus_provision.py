"""Provisioning makes a real nats-server equal to the topology, and services refuse one that differs from it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from shared.bus.jetstream.bus import NatsBus, connect
from shared.bus.jetstream.config import consumer_config
from shared.bus.port import ConsumerMissing, Subscription
from shared.bus.provision import provision
from shared.bus.subjects import pattern
from shared.bus.topology import EXPORTER_SEGMENTS, JUDGE_SEGMENTS, SEGMENTS, stream_of
from shared.contracts.events import RmTrained, SegmentReady
from shared.errors import Fatal
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


def test_events_of_one_subscription_come_from_one_stream() -> None:
    mixed = Subscription("mixed", (SegmentReady, RmTrained))
    with pytest.raises(ValueError, match="no single stream holds them; split it"):
        stream_of(mixed)
