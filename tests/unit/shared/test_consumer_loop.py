"""The guarded loop, guard by guard, over the memory bus."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from shared.bus.answer import ATTEMPTS, BACKOFF_S
from shared.bus.consumer import Consumer, ConsumerLoop
from shared.bus.memory import MemoryBus
from shared.bus.outage import Outage
from shared.bus.topology import JUDGE_SEGMENTS, MAX_DELIVER, REWARDMODEL_SCORES
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import ScoresReady, SegmentReady
from shared.errors import Fatal, Permanent, Transient
from shared.store import keys
from tests.events import scores_ready, segment_ready


class Clock:
    """Seconds that pass only when told to."""

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


async def test_an_event_is_handled_its_results_published_and_acknowledged() -> None:
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


async def test_a_transient_error_is_retried_after_a_growing_pause() -> None:
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


async def test_in_an_outage_nothing_is_fetched_and_no_try_is_used_up() -> None:
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
    async with running(bus, Consumer(replace(JUDGE_SEGMENTS, slots=4), handler), outage=Outage(answers)):
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


async def test_a_permanent_error_is_a_dead_letter_at_once_and_the_service_records_it() -> None:
    bus, recorded = MemoryBus(), []

    async def handler(event: Envelope) -> Sequence[Envelope]:
        raise Permanent("the archive has no manifest")

    async def on_dead(event: Envelope, reason: str) -> Sequence[Envelope]:
        recorded.append(reason)
        return [judged(event)]

    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler, on_dead)):
        await until(lambda: recorded)
    [letter] = await bus.dead.list()
    assert (letter.reason, letter.attempt) == ("the archive has no manifest", 1)
    assert recorded == ["the archive has no manifest"]
    assert await bus.pending(REWARDMODEL_SCORES) == 1


@pytest.mark.parametrize(
    "raw", [b"", b"not json", b"{}", b"\xff\xfe", b"[" * 5000, b'{"type":"zelda.unknown.v1","data":{}}', b"x" * 10_000]
)
async def test_poison_bytes_are_dead_letters_without_a_single_try(raw: bytes) -> None:
    bus, tries = MemoryBus(), 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal tries
        tries += 1
        return []

    bus.inject(raw, "zelda.v1.demo.segment.ready")
    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler)):
        await until(lambda: tries == 1)
    assert [letter.raw for letter in await bus.dead.list()] == [raw]
    assert await bus.pending(JUDGE_SEGMENTS) == 0


async def test_an_event_of_a_foreign_kind_is_a_dead_letter() -> None:
    bus = MemoryBus()
    bus.inject(scores_ready().to_bytes(), "zelda.v1.demo.segment.ready")
    async with running(bus, Consumer(JUDGE_SEGMENTS, _must_not_run)):
        await asyncio.sleep(0.2)
    [letter] = await bus.dead.list()
    assert "event type zelda.scores.ready.v1 on a consumer of zelda.segment.ready.v1" in letter.reason


async def _must_not_run(event: Envelope) -> Sequence[Envelope]:
    raise AssertionError("the handler must not see this event")


async def test_an_event_that_always_fails_ends_as_a_dead_letter_before_the_bus_goes_silent() -> None:
    clock = Clock()
    bus, attempts = MemoryBus(clock), 0

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal attempts
        attempts += 1
        raise ValueError("a bug")

    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler)):
        for attempt in range(1, ATTEMPTS + 1):
            await until_equal(lambda: attempts, attempt)
            await asyncio.sleep(0.02)
            clock.now += BACKOFF_S[-1]
    [letter] = await bus.dead.list()
    assert letter.reason == f"failed {ATTEMPTS} times, last with ValueError: a bug"
    assert attempts == ATTEMPTS < MAX_DELIVER


async def test_an_event_that_kills_its_process_every_time_is_set_aside_unhandled() -> None:
    clock = Clock()
    bus = MemoryBus(clock)
    await bus.publish(segment_ready())
    for _ in range(MAX_DELIVER - 2):  # delivered, and never answered
        assert len(await bus.fetch(JUDGE_SEGMENTS, 1, 0.1)) == 1
        clock.now += 31
    async with running(bus, Consumer(JUDGE_SEGMENTS, _must_not_run)):
        await asyncio.sleep(0.2)
    [letter] = await bus.dead.list()
    assert "handling it seems to end the process" in letter.reason


async def test_a_handler_that_hangs_is_cut_off_and_retried() -> None:
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


async def test_long_work_is_kept_alive_and_not_delivered_twice() -> None:
    clock = Clock()
    bus, starts, gate = MemoryBus(clock), 0, asyncio.Event()

    async def handler(event: Envelope) -> Sequence[Envelope]:
        nonlocal starts
        starts += 1
        await gate.wait()
        return []

    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler), keep_alive_s=0.02):
        await until(lambda: starts == 1)
        for _ in range(10):  # 200 s of work, the acknowledgement time is 30 s
            clock.now += 20
            await asyncio.sleep(0.05)
        gate.set()
    assert starts == 1
    assert await bus.pending(JUDGE_SEGMENTS) == 0


async def test_draining_finishes_the_work_in_hand_and_fetches_no_more() -> None:
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


async def test_work_beyond_the_drain_budget_is_given_back_at_once() -> None:
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


async def test_a_fatal_error_ends_the_loop_and_gives_the_message_back() -> None:
    bus = MemoryBus()

    async def handler(event: Envelope) -> Sequence[Envelope]:
        raise Fatal("wrong credentials for the judge")

    await bus.publish(segment_ready())
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(ConsumerLoop(bus, Consumer(JUDGE_SEGMENTS, handler)).run(asyncio.Event()), 3)
    assert caught.group_contains(Fatal, match="wrong credentials")
    assert len(await bus.fetch(JUDGE_SEGMENTS, 1, 0.1)) == 1


async def test_a_bus_that_is_away_is_waited_for() -> None:
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


async def test_an_acknowledgement_that_fails_leads_to_a_second_delivery_not_to_a_crash() -> None:
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


async def test_a_deleted_consumer_is_reported_and_made_again() -> None:
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


async def test_an_inactive_consumer_leaves_the_messages_to_others() -> None:
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


async def test_when_recording_a_dead_event_fails_it_is_not_rejected_yet() -> None:
    bus = MemoryBus()

    async def handler(event: Envelope) -> Sequence[Envelope]:
        raise Permanent("broken")

    async def on_dead(event: Envelope, reason: str) -> Sequence[Envelope]:
        raise Transient("the store is away")

    await bus.publish(segment_ready())
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler, on_dead)):
        await asyncio.sleep(0.2)
    assert await bus.dead.list() == []
    assert await bus.pending(JUDGE_SEGMENTS) == 1
