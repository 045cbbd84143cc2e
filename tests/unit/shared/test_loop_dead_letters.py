"""Dead letters of the guarded loop: hopeless events are set aside, recorded, and not retried."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from shared.bus.consumer import Consumer
from shared.bus.consumer_loop import ConsumerLoop
from shared.bus.delivery_handler import ATTEMPTS, BACKOFF_S
from shared.bus.memory import MemoryBus
from shared.bus.topology import JUDGE_SEGMENTS, MAX_DELIVER, REWARDMODEL_SCORES
from shared.contracts.envelope import Envelope
from shared.errors import Permanent, Transient
from tests.events import scores_ready, segment_ready
from tests.unit.shared.loop import Clock, judged, running, until, until_equal


async def test_permanent_error_becomes_a_dead_letter_that_the_service_records() -> None:
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


@pytest.mark.parametrize("cause", ["contract", "permanent", "exhausted", "crashing"])
def test_dead_letter_counter_exists_before_the_first_one(cause: str) -> None:
    labels = {"consumer": f"new-{cause}", "cause": cause}

    async def handler(event: Envelope) -> Sequence[Envelope]:
        return []

    assert REGISTRY.get_sample_value("zelda_bus_dead_letters_total", labels) is None
    ConsumerLoop(MemoryBus(), Consumer(replace(JUDGE_SEGMENTS, name=labels["consumer"]), handler))
    assert REGISTRY.get_sample_value("zelda_bus_dead_letters_total", labels) == 0


WITHOUT_A_ZONE = json.dumps({**json.loads(segment_ready().to_bytes()), "time": "2026-01-01T00:00:00"}).encode()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not json",
        b"{}",
        b"\xff\xfe",
        b"[" * 5000,
        b'{"type":"zelda.unknown.v1","data":{}}',
        b"x" * 10_000,
        WITHOUT_A_ZONE,
    ],
)
async def test_invalid_bytes_become_dead_letters_without_an_attempt(raw: bytes) -> None:
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


async def test_event_of_a_foreign_type_is_a_dead_letter() -> None:
    bus = MemoryBus()
    bus.inject(scores_ready().to_bytes(), "zelda.v1.demo.segment.ready")
    async with running(bus, Consumer(JUDGE_SEGMENTS, _must_not_run)):
        await asyncio.sleep(0.2)
    [letter] = await bus.dead.list()
    assert "event type zelda.scores.ready.v1 does not belong on a consumer of zelda.segment.ready.v1" in letter.reason


async def _must_not_run(event: Envelope) -> Sequence[Envelope]:
    raise AssertionError("the handler must not see this event")


async def test_failing_event_is_dead_lettered_before_the_bus_stops_delivery() -> None:
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
    assert letter.reason == f"given up after {ATTEMPTS} failures; last error: ValueError: a bug"
    assert attempts == ATTEMPTS < MAX_DELIVER


async def test_event_that_crashes_its_process_becomes_a_dead_letter() -> None:
    clock = Clock()
    bus = MemoryBus(clock)
    await bus.publish(segment_ready())
    for _ in range(MAX_DELIVER - 2):  # delivered, and never answered
        assert len(await bus.fetch(JUDGE_SEGMENTS, 1, 0.1)) == 1
        clock.now += 31
    async with running(bus, Consumer(JUDGE_SEGMENTS, _must_not_run)):
        await asyncio.sleep(0.2)
    [letter] = await bus.dead.list()
    assert "its handling probably crashes the process" in letter.reason


async def test_failed_on_dead_postpones_the_rejection() -> None:
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


async def test_an_event_held_over_many_restarts_is_no_dead_letter() -> None:
    bus, given_up = MemoryBus(), []

    async def on_dead(event: Envelope, reason: str) -> Sequence[Envelope]:
        given_up.append(reason)
        return []

    await bus.publish(segment_ready())
    for _ in range(ATTEMPTS + 1):
        stop, held = asyncio.Event(), asyncio.Event()

        async def hold(event: Envelope, stop: asyncio.Event = stop, held: asyncio.Event = held) -> Sequence[Envelope]:
            held.set()
            await stop.wait()
            raise Transient("the service is stopping while it waits for scores")

        loop = ConsumerLoop(bus, Consumer(JUDGE_SEGMENTS, hold, on_dead), fetch_s=0.01)
        process = asyncio.create_task(loop.run(stop))
        async with asyncio.timeout(3):  # the next process gets the event immediately
            await held.wait()
            stop.set()
            await process
    assert (given_up, await bus.dead.list(), await bus.pending(JUDGE_SEGMENTS)) == ([], [], 1)
