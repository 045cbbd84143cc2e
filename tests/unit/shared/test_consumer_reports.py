"""What a consumer's loop reports while it works: metrics that alerts are made of, and why no events can arrive."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from shared.bus import consumer_loop
from shared.bus.consumer import Consumer
from shared.bus.consumer_loop import BATCH
from shared.bus.memory import MemoryBus, MemoryDelivery
from shared.bus.port import Subscription
from shared.bus.topology import JUDGE_SEGMENTS
from shared.contracts.envelope import Envelope
from shared.errors import Transient
from tests.events import segment_ready
from tests.unit.shared.loop import running, until


class WatchedBus(MemoryBus):
    """A bus that notes how many events each fetch asks for, and creates no consumer while it is `full`."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.asked: list[int] = []

    async def fetch(self, subscription: Subscription, batch: int, timeout_s: float) -> Sequence[MemoryDelivery]:
        self.asked.append(batch)
        return await super().fetch(subscription, batch, timeout_s)

    async def ensure(self, subscription: Subscription) -> None:
        if self.full:
            raise Transient("the bus has no room for a consumer")
        await super().ensure(subscription)


async def _done(event: Envelope) -> Sequence[Envelope]:
    return []


def metric(name: str, subscription: Subscription) -> float:
    return REGISTRY.get_sample_value(f"zelda_bus_{name}", {"consumer": subscription.name}) or 0.0


async def test_no_fetch_asks_for_more_than_the_client_can_hold() -> None:
    bus = WatchedBus()
    async with running(bus, Consumer(replace(JUDGE_SEGMENTS, slots=10 * BATCH), _done)):
        await until(lambda: bus.asked)
    assert set(bus.asked) == {BATCH}


async def test_events_that_wait_for_a_slot_are_reported_as_pending() -> None:
    bus, gate = MemoryBus(), asyncio.Event()

    async def handler(event: Envelope) -> Sequence[Envelope]:
        await gate.wait()
        return []

    for number in range(3):
        await bus.publish(segment_ready(number))
    async with running(bus, Consumer(replace(JUDGE_SEGMENTS, slots=1), handler), watch_s=0.01):
        await until(lambda: metric("events_pending", JUDGE_SEGMENTS) == 3)
        gate.set()
        await until(lambda: metric("events_pending", JUDGE_SEGMENTS) == 0)


async def test_a_lost_consumer_is_why_no_events_arrive_until_it_is_back() -> None:
    bus, restored = WatchedBus(), metric("consumers_restored_total", JUDGE_SEGMENTS)
    async with running(bus, Consumer(JUDGE_SEGMENTS, _done), watch_s=0.01) as loop:
        bus.full = True
        bus.delete_consumer(JUDGE_SEGMENTS.name)
        await until(lambda: loop.missing)
        assert loop.missing == "bus: consumer 'judge-segments' is missing"
        bus.full = False
        await until(lambda: loop.missing is None)
    assert metric("consumers_restored_total", JUDGE_SEGMENTS) > restored


async def test_an_absent_bus_is_the_reason_why_no_events_arrive() -> None:
    bus = MemoryBus()
    async with running(bus, Consumer(JUDGE_SEGMENTS, _done), watch_s=0.01) as loop:
        bus.connected = False
        await until(lambda: loop.missing)
        assert loop.missing == "bus: not connected"
        bus.connected = True
        await until(lambda: loop.missing is None)


async def test_pauses_after_failing_fetches_grow_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_loop, "PAUSES_S", (0.001, 0.002, 0.003))
    bus = MemoryBus()
    bus.connected = False
    with capture_logs() as lines:
        async with running(bus, Consumer(JUDGE_SEGMENTS, _done)):
            await until(lambda: len(lines) >= 5)
    pauses = [line["retry_s"] for line in lines if line["event"] == "fetch failed"]
    assert pauses[:5] == [0.001, 0.002, 0.003, 0.003, 0.003]
