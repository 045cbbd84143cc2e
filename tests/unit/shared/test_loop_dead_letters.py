"""Dead letters of the guarded loop: what can never succeed is set aside, recorded, and tried no more."""

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


@pytest.mark.parametrize("cause", ["contract", "permanent", "exhausted", "crashing"])
def test_the_first_dead_letter_of_a_consumer_can_be_seen_to_come(cause: str) -> None:
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
    assert letter.reason == f"given up after {ATTEMPTS} deliveries, the last ended with ValueError: a bug"
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
