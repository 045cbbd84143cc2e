"""The contract of every bus: memory, and JetStream on a real nats-server."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from shared.bus.jetstream.bus import NatsBus, connect
from shared.bus.jetstream.dead_letters import NatsDeadLetters
from shared.bus.memory import MemoryBus
from shared.bus.port import Bus, ConsumerMissing, DeadLetters, Delivery, Subscription
from shared.bus.provision import provision
from shared.bus.topology import (
    EXPORTER_SEGMENTS,
    JUDGE_SEGMENTS,
    MAX_DELIVER,
    REWARDMODEL_SCORES,
    TRAINER_RUNS,
    stream_of,
)
from shared.contracts.envelope import parse
from shared.errors import Permanent, Transient
from tests.events import rm_ready, scores_ready, segment_ready

SOON_S = 2.0


class World:
    """A bus and what an operator can do to it."""

    def __init__(self, bus: MemoryBus | NatsBus) -> None:
        self.bus: Bus = bus
        self._real = bus
        self.dead: DeadLetters = bus.dead if isinstance(bus, MemoryBus) else NatsDeadLetters(bus)

    async def purge(self, subscription: Subscription) -> None:
        if isinstance(self._real, MemoryBus):
            self._real.purge()
        else:
            await self._real.context.purge_stream(stream_of(subscription).name)

    async def delete_consumer(self, subscription: Subscription) -> None:
        if isinstance(self._real, MemoryBus):
            self._real.delete_consumer(subscription.name)
        else:
            await self._real.context.delete_consumer(stream_of(subscription).name, subscription.name)


@pytest.fixture(params=["memory", "nats"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """An empty bus with the declared topology."""
    if request.param == "memory":
        yield World(MemoryBus())
        return
    server: Any = request.getfixturevalue("nats_server")
    bus = await connect(server.settings, "contract")
    await provision(server.settings)
    yield World(bus)
    await bus.close()


async def one(bus: Bus, subscription: Subscription = JUDGE_SEGMENTS, timeout_s: float = SOON_S) -> Delivery:
    """The next message, which must come soon."""
    deliveries = await bus.fetch(subscription, 1, timeout_s)
    assert len(deliveries) == 1
    return deliveries[0]


async def nothing(bus: Bus, subscription: Subscription = JUDGE_SEGMENTS) -> bool:
    """Whether no message comes for a moment."""
    return len(await bus.fetch(subscription, 1, 0.2)) == 0


async def test_event_reaches_each_consumer_once(world: World) -> None:
    event = segment_ready()
    await world.bus.publish(event)
    for subscription in (JUDGE_SEGMENTS, EXPORTER_SEGMENTS):
        delivery = await one(world.bus, subscription)
        assert (parse(delivery.raw), delivery.attempt) == (event, 1)
        assert delivery.subject == "zelda.v1.demo.segment.ready"
        await delivery.ack()
        assert await nothing(world.bus, subscription)
        assert await world.bus.pending(subscription) == 0


async def test_consumer_receives_only_its_kinds_of_events(world: World) -> None:
    await world.bus.publish(scores_ready())
    await world.bus.publish(rm_ready())
    assert await nothing(world.bus)
    assert parse((await one(world.bus, REWARDMODEL_SCORES)).raw).type == "zelda.scores.ready.v1"
    assert parse((await one(world.bus, TRAINER_RUNS)).raw).type == "zelda.rm.ready.v1"


async def test_publishing_again_is_the_same_event(world: World) -> None:
    for _ in range(3):
        await world.bus.publish(segment_ready())
    await (await one(world.bus)).ack()
    assert await nothing(world.bus)


async def test_only_a_new_replay_nonce_passes_after_a_purge(world: World) -> None:
    await world.bus.publish(segment_ready())
    await world.purge(JUDGE_SEGMENTS)
    await world.bus.publish(segment_ready())
    assert await nothing(world.bus)
    await world.bus.publish(segment_ready(), replay_nonce=1)
    await world.bus.publish(segment_ready(), replay_nonce=1)
    await (await one(world.bus)).ack()
    assert await nothing(world.bus)


async def test_message_given_back_is_redelivered_after_its_delay(world: World) -> None:
    await world.bus.publish(segment_ready())
    first = await one(world.bus)
    await first.nak(0)
    second = await one(world.bus)
    assert (second.attempt, second.number) == (2, first.number)
    started = asyncio.get_running_loop().time()
    await second.nak(0.5)
    third = await one(world.bus)
    assert third.attempt == 3
    assert 0.4 < asyncio.get_running_loop().time() - started < 1.5


async def test_message_given_back_each_time_reaches_max_deliver(world: World) -> None:
    await world.bus.publish(segment_ready())
    for attempt in range(1, MAX_DELIVER + 1):
        delivery = await one(world.bus)
        assert delivery.attempt == attempt
        await delivery.nak(0)
    assert await nothing(world.bus)


async def test_answer_to_an_earlier_delivery_counts(world: World) -> None:
    await world.bus.publish(segment_ready())
    first = await one(world.bus)
    await first.nak(0)
    second = await one(world.bus)
    await first.nak(0)  # the work that the first delivery began has failed
    third = await one(world.bus)
    assert third.attempt > second.attempt
    await first.ack()
    assert await nothing(world.bus)
    assert await world.bus.pending(JUDGE_SEGMENTS) == 0


async def test_fetch_returns_available_messages_without_waiting_for_a_batch(world: World) -> None:
    for number in range(3):
        await world.bus.publish(segment_ready(number))
    started = asyncio.get_running_loop().time()
    deliveries = await world.bus.fetch(JUDGE_SEGMENTS, 10, SOON_S)
    assert [parse(d.raw).data.key[-9:-4] for d in deliveries] == ["00000", "00001", "00002"]
    assert len({d.number for d in deliveries}) == 3
    assert asyncio.get_running_loop().time() - started < 0.5


async def test_empty_fetch_ends_in_time(world: World) -> None:
    started = asyncio.get_running_loop().time()
    assert await world.bus.fetch(JUDGE_SEGMENTS, 5, 0.3) == []
    assert 0.25 < asyncio.get_running_loop().time() - started < 1.0


async def test_waiting_fetch_returns_at_the_first_event(world: World) -> None:
    fetching = asyncio.create_task(world.bus.fetch(JUDGE_SEGMENTS, 5, 5))
    await asyncio.sleep(0.2)
    started = asyncio.get_running_loop().time()
    await world.bus.publish(segment_ready())
    assert len(await fetching) == 1
    assert asyncio.get_running_loop().time() - started < 0.5


async def test_cancelled_fetch_loses_no_message(world: World) -> None:
    fetching = asyncio.create_task(world.bus.fetch(JUDGE_SEGMENTS, 5, 1.0))
    await asyncio.sleep(0.2)
    fetching.cancel()
    await asyncio.gather(fetching, return_exceptions=True)
    await world.bus.publish(segment_ready())
    await (await one(world.bus, timeout_s=3)).ack()


async def test_pending_counts_waiting_and_unanswered_messages(world: World) -> None:
    for number in range(3):
        await world.bus.publish(segment_ready(number))
    delivery = await one(world.bus)
    assert await world.bus.pending(JUDGE_SEGMENTS) == 3
    await delivery.ack()
    assert await world.bus.pending(JUDGE_SEGMENTS) == 2


async def test_deleted_consumer_is_detected_and_recreated(world: World) -> None:
    await world.delete_consumer(JUDGE_SEGMENTS)
    with pytest.raises(ConsumerMissing, match="judge-segments"):
        await world.bus.pending(JUDGE_SEGMENTS)
    with pytest.raises(ConsumerMissing, match="judge-segments"):
        await world.bus.fetch(JUDGE_SEGMENTS, 1, 0.5)
    await world.bus.ensure(JUDGE_SEGMENTS)
    await world.bus.publish(segment_ready())
    await (await one(world.bus)).ack()


async def test_answer_to_a_deleted_consumer_is_not_confirmed(world: World) -> None:
    await world.bus.publish(segment_ready())
    delivery = await one(world.bus)
    await world.delete_consumer(JUDGE_SEGMENTS)
    for answer in (delivery.ack(), delivery.nak(0), delivery.in_progress()):
        with pytest.raises(Transient, match="judge-segments"):
            await answer


async def test_recreated_consumer_receives_what_others_still_need(world: World) -> None:
    await world.bus.publish(segment_ready())
    await (await one(world.bus)).ack()
    await world.delete_consumer(JUDGE_SEGMENTS)
    await world.bus.ensure(JUDGE_SEGMENTS)
    again, others = await one(world.bus), await one(world.bus, EXPORTER_SEGMENTS)
    assert (again.attempt, again.number) == (1, others.number)
    for delivery in (again, others):
        await delivery.ack()
    await world.delete_consumer(JUDGE_SEGMENTS)
    await world.bus.ensure(JUDGE_SEGMENTS)
    assert await nothing(world.bus)


async def test_rejected_message_becomes_a_dead_letter_with_its_reason(world: World) -> None:
    await world.bus.publish(segment_ready())
    await (await one(world.bus)).reject("the archive is not a zip: é\nsecond line" + "." * 900)
    assert await nothing(world.bus)
    assert await world.bus.pending(JUDGE_SEGMENTS) == 0
    [letter] = await world.dead.list()
    assert letter.reason == f"{'the archive is not a zip: ? second line':.<500}"
    assert (letter.consumer, letter.attempt, letter.raw) == ("judge-segments", 1, segment_ready_bytes(letter.raw))
    assert (await world.dead.get(letter.number)).subject == "zelda.v1.demo.segment.ready"


async def test_dead_letters_of_one_consumer_are_listed_from_a_number_on(world: World) -> None:
    for number in range(3):
        await world.bus.publish(segment_ready(number))
        await (await one(world.bus)).reject("the judge was misconfigured")
        await (await one(world.bus, EXPORTER_SEGMENTS)).reject("no ROM")
    letters = [letter for letter in await world.dead.list() if letter.consumer == EXPORTER_SEGMENTS.name]
    assert len(letters) == 3
    assert await world.dead.list(consumer=EXPORTER_SEGMENTS.name) == letters
    later = await world.dead.list(limit=1, after=letters[0].number, consumer=EXPORTER_SEGMENTS.name)
    assert later == letters[1:2]
    assert await world.dead.list(after=letters[-1].number) == []


async def test_message_rejected_twice_is_one_dead_letter(world: World) -> None:
    await world.bus.publish(segment_ready())
    first = await one(world.bus)
    await first.nak(0)
    await (await one(world.bus)).reject("the archive is gone")
    await first.reject("the archive is not a zip")
    assert [letter.reason for letter in await world.dead.list()] == ["the archive is gone"]
    assert await nothing(world.bus)


def segment_ready_bytes(raw: bytes) -> bytes:
    """`raw`, having checked that it is still the event that was published."""
    assert parse(raw).id == segment_ready().id
    return raw


async def test_replayed_dead_letter_is_delivered_once_and_removed(world: World) -> None:
    await world.bus.publish(segment_ready())
    await (await one(world.bus)).reject("the judge was misconfigured")
    [letter] = await world.dead.list()
    await world.dead.replay(letter.number)
    assert parse((await one(world.bus)).raw).id == segment_ready().id
    assert await world.dead.list() == []
    with pytest.raises(Permanent, match="no dead letter"):
        await world.dead.replay(letter.number)


async def test_replaying_all_dead_letters_loses_none(world: World) -> None:
    for number in range(2):
        await world.bus.publish(segment_ready(number))
        await (await one(world.bus)).reject("the judge was misconfigured")
    for letter in await world.dead.list():
        await world.dead.replay(letter.number)
    found = [await one(world.bus), await one(world.bus)]
    assert {parse(delivery.raw).id for delivery in found} == {segment_ready(number).id for number in range(2)}


async def test_dropped_dead_letter_is_gone(world: World) -> None:
    for number in range(2):
        await world.bus.publish(segment_ready(number))
        await (await one(world.bus)).reject(f"reason {number}")
    first, second = await world.dead.list()
    assert await world.dead.list(limit=1) == [first]
    await world.dead.drop(first.number)
    assert [letter.number for letter in await world.dead.list()] == [second.number]
    with pytest.raises(Permanent, match="no dead letter"):
        await world.dead.get(first.number)


async def test_a_published_event_names_the_span_that_published_it(world: World, spans: InMemorySpanExporter) -> None:
    await world.bus.publish(segment_ready())
    event = parse((await one(world.bus)).raw)
    (published,) = spans.get_finished_spans()
    assert published.name == "publish zelda.segment.ready.v1"
    assert event.traceparent == traceparent_of(published)
    assert event.id == segment_ready().id


async def test_without_a_collector_an_event_keeps_its_trace(world: World) -> None:
    sent = segment_ready().model_copy(update={"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
    await world.bus.publish(sent)
    assert parse((await one(world.bus)).raw).traceparent == sent.traceparent
    await world.bus.publish(segment_ready(1))
    assert parse((await one(world.bus)).raw).traceparent is None


def traceparent_of(span: ReadableSpan) -> str:
    """A span as the header of the W3C names it."""
    found = span.context
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"
