"""The guarded loop at a stop: running work ends or is given back, and nothing new starts."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from shared.bus.consumer import Consumer
from shared.bus.consumer_loop import ConsumerLoop
from shared.bus.memory import MemoryBus, MemoryDelivery
from shared.bus.port import Subscription
from shared.bus.topology import JUDGE_SEGMENTS
from shared.contracts.envelope import Envelope
from tests.events import segment_ready
from tests.unit.shared.loop import running, until


async def test_drain_finishes_running_work_and_fetches_nothing() -> None:
    bus, started, done = MemoryBus(), 0, 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal started, done
        started += 1
        await asyncio.sleep(0.3)
        done += 1
        return []

    for number in range(5):
        await bus.publish(segment_ready(number))
    async with running(bus, Consumer(replace(JUDGE_SEGMENTS, slots=2), handler)):
        await until(lambda: started == 2)
    assert (started, done) == (2, 2)
    assert await bus.pending(JUDGE_SEGMENTS) == 3


async def test_what_a_fetch_brings_after_the_stop_is_given_back_unhandled() -> None:
    class SlowBus(MemoryBus):
        """Answers a fetch only when the service has to stop."""

        async def fetch(self, subscription: Subscription, batch: int, timeout_s: float) -> Sequence[MemoryDelivery]:
            found = await super().fetch(subscription, batch, timeout_s)
            stop.set()
            return found

    bus, stop, started = SlowBus(), asyncio.Event(), 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal started
        started += 1
        return []

    for number in range(3):
        await bus.publish(segment_ready(number))
    await asyncio.wait_for(ConsumerLoop(bus, Consumer(JUDGE_SEGMENTS, handler)).run(stop), 3)
    assert started == 0
    assert len(await MemoryBus.fetch(bus, JUDGE_SEGMENTS, 10, 0.1)) == 3, "another process gets them immediately"


async def test_work_beyond_the_drain_budget_is_given_back() -> None:
    bus, started = MemoryBus(), 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal started
        started += 1
        await asyncio.sleep(60)
        return []

    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler), drain_s=0.1):
        await until(lambda: started == 1)
    [again] = await bus.fetch(JUDGE_SEGMENTS, 1, 0.1)  # no need to wait for the acknowledgement time
    assert again.attempt == 2
