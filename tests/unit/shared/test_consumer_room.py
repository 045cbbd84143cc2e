"""A consumer whose capacity changes takes only as many events as it has room for."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from shared.bus.consumer import Consumer
from shared.bus.memory import MemoryBus
from shared.bus.topology import JUDGE_SEGMENTS
from shared.contracts.envelope import Envelope
from tests.events import segment_ready
from tests.unit.shared.loop import running, until


async def test_a_consumer_with_little_room_takes_few_events() -> None:
    bus, room, running_now, most, done = MemoryBus(), 2, 0, 0, 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal running_now, most, done
        running_now += 1
        most = max(most, running_now)
        await asyncio.sleep(0.01)
        running_now -= 1
        done += 1
        return []

    for number in range(12):
        await bus.publish(segment_ready(number))
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler, room=lambda: room)):
        await until(lambda: done >= 4)
        assert most == 2
        room = 0  # never less than one, or nothing would change again
        await until(lambda: done == 12)
    assert most == 2


async def test_a_consumer_whose_room_shrinks_takes_no_more_until_it_has_room() -> None:
    bus, room, started, finish = MemoryBus(), 8, 0, asyncio.Semaphore(0)

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal started
        started += 1
        await finish.acquire()
        return []

    for number in range(20):
        await bus.publish(segment_ready(number))
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler, room=lambda: room)):
        await until(lambda: started == 8)
        room = 3
        finish.release()
        await asyncio.sleep(0.2)
        assert started == 8
        room = 20
        for _ in range(20):
            finish.release()
        await until(lambda: started == 20)


def test_room_never_exceeds_the_slots() -> None:
    assert Consumer(replace(JUDGE_SEGMENTS, slots=4), _unused, room=lambda: 99).slots == 4


async def _unused(event: Envelope) -> Sequence[Envelope]:
    raise AssertionError
