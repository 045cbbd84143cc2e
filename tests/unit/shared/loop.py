"""Runs the guarded loop over the memory bus, for the tests of its guards."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from shared.bus.consumer import Consumer
from shared.bus.consumer_loop import ConsumerLoop
from shared.bus.memory import MemoryBus
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import ScoresReady, SegmentReady
from shared.store import keys


class Clock:
    """A clock that advances only on request."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def judged(event: Envelope) -> Envelope:
    """The scores event that follows from a segment event."""
    assert isinstance(event.data, SegmentReady)
    key = keys.score(event.runid, event.epoch, event.data.segment)
    data = ScoresReady(
        run=event.runid, epoch=event.epoch, key=key, digest=event.data.digest, segment=event.data.segment,
        status="judged",
    )  # fmt: skip
    return wrap(data, source="judge")


@asynccontextmanager
async def running(bus: MemoryBus, consumer: Consumer, **options: Any) -> AsyncIterator[ConsumerLoop]:
    """The loop at work; leaving the block stops and drains it."""
    stop = asyncio.Event()
    loop = ConsumerLoop(bus, consumer, fetch_s=0.05, rng=random.Random(1), **options)
    task = asyncio.create_task(loop.run(stop))
    try:
        yield loop
    finally:
        stop.set()
        await asyncio.wait_for(task, 5)


async def until(condition: Callable[[], object], seconds: float = 3.0) -> None:
    """Wait until `condition()` holds."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


async def until_equal(value: Callable[[], int], wanted: int) -> None:
    """Wait until `value()` is what is wanted."""
    await until(lambda: value() == wanted)
