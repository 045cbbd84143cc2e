"""The guards of the consumer loop over the memory bus. test_loop_dead_letters.py and test_loop_stop.py cover more."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from shared.bus.consumer import Consumer
from shared.bus.consumer_loop import PAUSES_S, ConsumerLoop
from shared.bus.delivery_handler import BACKOFF_S
from shared.bus.memory import MemoryBus
from shared.bus.outage import CHECK_S, OutageDetector
from shared.bus.topology import ACK_WAIT_S, JUDGE_SEGMENTS, REWARDMODEL_SCORES
from shared.contracts.envelope import Envelope
from shared.errors import Fatal, Transient
from tests.events import segment_ready
from tests.unit.shared.loop import Clock, judged, running, until, until_equal


async def test_event_is_handled_its_results_published_and_acknowledged() -> None:
    bus, seen = MemoryBus(), []

    async def handler(event: Envelope) -> Sequence[Envelope]:
        seen.append(event)
        return [judged(event)]

    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler)):
        await until(lambda: seen)
    assert seen == [segment_ready().model_copy(update={"time": seen[0].time})]
    assert await bus.pending(JUDGE_SEGMENTS) == 0
    assert await bus.pending(REWARDMODEL_SCORES) == 1


async def test_no_more_events_start_than_there_are_slots() -> None:
    bus, now, most = MemoryBus(), 0, 0
    gate = asyncio.Event()

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await gate.wait()
        now -= 1
        return []

    for number in range(10):
        await bus.publish(segment_ready(number))
    async with running(bus, Consumer(replace(JUDGE_SEGMENTS, slots=3), handler)):
        await until(lambda: now == 3)
        await asyncio.sleep(0.2)
        gate.set()
        await until(lambda: most == 3 and now == 0)
        await asyncio.sleep(0.1)
    assert most == 3
    assert await bus.pending(JUDGE_SEGMENTS) == 0


async def test_consumer_with_all_slots_busy_still_reports_its_last_fetch() -> None:
    bus, gate, started = MemoryBus(), asyncio.Event(), False
    labels = {"consumer": JUDGE_SEGMENTS.name}

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal started
        started = True
        await gate.wait()  # as an epoch waits for its scores
        return []

    def heard() -> float:
        return REGISTRY.get_sample_value("zelda_bus_last_fetch_timestamp_seconds", labels) or 0.0

    await bus.publish(segment_ready())
    async with running(bus, Consumer(replace(JUDGE_SEGMENTS, slots=1), handler), watch_s=0.02):
        await until(lambda: started)
        since = heard()
        await until(lambda: heard() > since)
        gate.set()


async def test_transient_error_is_retried_after_a_growing_pause() -> None:
    clock, attempts = Clock(), 0
    bus = MemoryBus(clock)

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal attempts
        attempts += 1
        if attempts < 4:
            raise Transient("the store is away")
        return []

    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler)):
        for attempt in range(1, 4):
            await until_equal(lambda: attempts, attempt)
            await asyncio.sleep(0.05)
            clock.now += BACKOFF_S[attempt - 1]
        await until(lambda: attempts == 4)
    assert await bus.pending(JUDGE_SEGMENTS) == 0
    assert await bus.dead.list() == []


async def test_outage_stops_fetching_and_costs_no_attempt() -> None:
    clock, away, tries, done = Clock(), True, 0, 0
    bus = MemoryBus(clock)

    async def answers() -> bool:
        return not away

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal tries, done
        tries += 1
        if away:
            raise Transient("the store is away")
        done += 1
        return []

    for number in range(20):
        await bus.publish(segment_ready(number))
    async with running(bus, Consumer(replace(JUDGE_SEGMENTS, slots=4), handler), outage=OutageDetector(answers)):
        await until(lambda: tries > 0)
        for _ in range(10):
            clock.now += BACKOFF_S[-1]
            await asyncio.sleep(0.05)
        assert tries <= 8  # what was in hand when the outage began
        away = False
        clock.now += BACKOFF_S[0]
        await until_equal(lambda: done, 20)
    assert await bus.pending(JUDGE_SEGMENTS) == 0
    assert await bus.dead.list() == []


async def test_hanging_handler_is_cancelled_and_retried() -> None:
    bus, tries = MemoryBus(), 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal tries
        tries += 1
        await asyncio.sleep(60)
        return []

    await bus.publish(segment_ready())
    async with running(bus, Consumer(replace(JUDGE_SEGMENTS, timeout_s=0.05), handler)):
        await until(lambda: tries == 1)
        await asyncio.sleep(0.2)
        assert await bus.pending(JUDGE_SEGMENTS) == 1
    assert await bus.dead.list() == []


class LongWork:
    """A handler that ends when its gate is opened."""

    def __init__(self) -> None:
        self.starts, self.gate = 0, asyncio.Event()

    async def __call__(self, event: Envelope) -> Sequence[Envelope]:
        self.starts += 1
        await self.gate.wait()
        return []


async def test_long_work_signals_progress_and_is_not_delivered_twice() -> None:
    clock, work = Clock(), LongWork()
    bus = MemoryBus(clock)
    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, work), keep_alive_s=0.02):
        await until(lambda: work.starts == 1)
        for _ in range(10):  # 200 s of work, the acknowledgement time is 30 s
            clock.now += 20
            await asyncio.sleep(0.05)
        work.gate.set()
    assert work.starts == 1
    assert await bus.pending(JUDGE_SEGMENTS) == 0


async def test_lost_progress_signal_is_followed_by_others() -> None:
    clock, work = Clock(), LongWork()
    bus = MemoryBus(clock)
    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, work), keep_alive_s=0.02):
        await until(lambda: work.starts == 1)
        with capture_logs() as lines:
            bus.connected = False
            await until(lambda: any(line["event"] == "progress signal not confirmed" for line in lines))
            bus.connected = True
        clock.now += ACK_WAIT_S - 1
        due = bus._queues[JUDGE_SEGMENTS.name].messages[1].due
        await until(lambda: bus._queues[JUDGE_SEGMENTS.name].messages[1].due > due)
        work.gate.set()
    assert await bus.pending(JUDGE_SEGMENTS) == 0


async def test_store_is_checked_once_a_second_however_many_events_fail() -> None:
    clock, asked = Clock(), 0

    async def answers() -> bool:
        nonlocal asked
        asked += 1
        return asked > 1

    away = OutageDetector(answers, clock)
    assert await asyncio.gather(*(away.check() for _ in range(20))) == [True] * 20
    assert asked == 1
    clock.now += CHECK_S
    assert not await away.check()


async def test_failed_work_is_redelivered_although_the_bus_lost_its_signals() -> None:
    clock, starts, gate = Clock(), 0, asyncio.Event()
    bus = MemoryBus(clock)

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal starts
        starts += 1
        if starts == 1:
            await gate.wait()
            raise Transient("the judge went away")
        return []

    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler), keep_alive_s=60):
        await until(lambda: starts == 1)
        clock.now += ACK_WAIT_S + 1  # no sign of life has arrived: the message is delivered once more
        await asyncio.sleep(0.2)
        assert starts == 1
        assert await bus.pending(JUDGE_SEGMENTS) == 1
        gate.set()
        await asyncio.sleep(0.05)
        clock.now += BACKOFF_S[0]
        await until(lambda: starts == 2)
    assert await bus.pending(JUDGE_SEGMENTS) == 0


async def test_fatal_error_ends_the_loop_and_gives_the_message_back() -> None:
    bus = MemoryBus()

    async def handler(event: Envelope) -> Sequence[Envelope]:
        raise Fatal("wrong credentials for the judge")

    await bus.publish(segment_ready())
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(ConsumerLoop(bus, Consumer(JUDGE_SEGMENTS, handler)).run(asyncio.Event()), 3)
    assert caught.group_contains(Fatal, match="wrong credentials")
    assert len(await bus.fetch(JUDGE_SEGMENTS, 1, 0.1)) == 1


async def test_loop_waits_for_an_absent_bus() -> None:
    bus, seen = MemoryBus(), 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal seen
        seen += 1
        return []

    async with running(bus, Consumer(JUDGE_SEGMENTS, handler), watch_s=0.05) as loop:
        bus.connected = False
        await asyncio.sleep(0.3)
        bus.connected = True
        await bus.publish(segment_ready())
        await until(lambda: seen == 1)
        await until(lambda: loop.missing is None)


async def test_each_bus_outage_begins_with_the_shortest_pause() -> None:
    bus, seen = MemoryBus(), 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal seen
        seen += 1
        return []

    with capture_logs() as lines:
        async with running(bus, Consumer(JUDGE_SEGMENTS, handler)):
            for number in (1, 2):
                before = len(lines)
                bus.connected = False
                await until(lambda before=before: len(lines) > before)  # type: ignore[misc]
                bus.connected = True
                await bus.publish(segment_ready(number))
                await until_equal(lambda: seen, number)
                assert lines[before]["retry_s"] == PAUSES_S[0]


async def test_handled_message_is_not_given_back_at_the_end() -> None:
    def given_back() -> float:
        labels = {"consumer": "judge-segments", "outcome": "given_back"}
        return REGISTRY.get_sample_value("zelda_bus_deliveries_total", labels) or 0.0

    bus, seen, before = MemoryBus(), 0, given_back()

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal seen
        seen += 1
        return []

    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler)):
        await until_equal(lambda: seen, 1)
    assert given_back() == before


async def test_failed_acknowledgement_causes_a_redelivery_not_a_crash() -> None:
    clock = Clock()
    bus, seen = MemoryBus(clock), 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal seen
        seen += 1
        bus.connected = seen > 1  # the bus goes away while the first one is handled
        return []

    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler)):
        await until(lambda: seen == 1)
        bus.connected = True
        clock.now += 31
        await until(lambda: seen == 2)
    assert await bus.pending(JUDGE_SEGMENTS) == 0


async def test_deleted_consumer_is_reported_and_recreated() -> None:
    bus, seen = MemoryBus(), 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal seen
        seen += 1
        return []

    async with running(bus, Consumer(JUDGE_SEGMENTS, handler), watch_s=0.05):
        bus.delete_consumer("judge-segments")
        await asyncio.sleep(0.3)
        await bus.publish(segment_ready())
        await until(lambda: seen == 1)


async def test_inactive_consumer_leaves_messages_to_others() -> None:
    bus, leads, seen = MemoryBus(), False, 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal seen
        seen += 1
        return []

    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler, active=lambda: leads)):
        await asyncio.sleep(0.3)
        assert seen == 0
        leads = True
        await until(lambda: seen == 1)
