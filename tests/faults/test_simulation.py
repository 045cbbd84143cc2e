"""Simulates a small ring in one process under random faults: no segment is lost, duplicated or invented.

Segments are recorded, judged and counted by the real consumer loop over the memory bus and store. Processes crash at
any call of bus or store; events are lost, repeated and reordered; consumers are deleted; bus and store go away.
At the end a reconciler republishes events until none is missing. hypothesis shrinks a failure to its shortest history.
"""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from shared.bus.consumer import Consumer
from shared.bus.delivery_handler import DeliveryHandler
from shared.bus.memory import MemoryBus
from shared.bus.outage import OutageDetector
from shared.bus.topology import JUDGE_SEGMENTS, REWARDMODEL_SCORES
from shared.contracts.base import sha256
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import ScoresReady, SegmentReady
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId
from shared.errors import Transient
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import AlreadyExists

RUN, EPISODE = RunId("sim"), EpisodeId("e0")
COUNTED = f"models/runs/{RUN}/counted/"
SUBSCRIPTIONS = {"judge": JUDGE_SEGMENTS, "rewardmodel": REWARDMODEL_SCORES}

# Histories with mostly broken servers find few faults.
MOSTLY_UP = st.sampled_from([True, True, True, False])
CRASHES_AT = st.none() | st.none() | st.integers(0, 6)


class Crash(BaseException):
    """The process crashes here. Not an Exception, so that no handler can catch it."""


class CrashCounter:
    """Raises Crash at the n-th call."""

    def __init__(self) -> None:
        self.left: int | None = None

    def count_call(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Crash


class CrashingStore:
    """A store whose callers may crash before or after a write, or find it unavailable. `inner` holds the objects."""

    def __init__(self, crash_counter: CrashCounter) -> None:
        self.inner = MemoryStore()
        self.crash_counter, self.away = crash_counter, False

    async def get(self, key: str, digest: str | None = None) -> bytes:
        self._check_available()
        return await self.inner.get(key, digest)

    async def create(self, key: str, data: bytes) -> str:
        self.crash_counter.count_call()
        self._check_available()
        try:
            return await self.inner.create(key, data)
        finally:
            self.crash_counter.count_call()

    def _check_available(self) -> None:
        if self.away:
            raise Transient("the store is away")


class CrashingBus(MemoryBus):
    """A bus whose callers may crash before or after a publish."""

    def __init__(self, crash_counter: CrashCounter, clock: "Clock") -> None:
        super().__init__(clock)
        self.crash_counter = crash_counter

    async def publish(self, event: Envelope, *, replay_nonce: int = 0) -> None:
        self.crash_counter.count_call()
        await super().publish(event, replay_nonce=replay_nonce)
        self.crash_counter.count_call()


class Clock:
    """A clock in seconds that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def segment_ready(number: int, digest: str) -> Envelope:
    """The event of one recorded segment."""
    segment = SegmentId(f"s{number:04d}")
    key = keys.segment(RUN, 0, EPISODE, segment)
    data = SegmentReady(run=RUN, epoch=0, key=key, digest=Digest(digest), episode=EPISODE, segment=segment)
    return wrap(data, source="trainer")


def scores_ready(segment: SegmentId, digest: str) -> Envelope:
    """The event of one score object."""
    key = keys.score(RUN, 0, segment)
    data = ScoresReady(run=RUN, epoch=0, key=key, digest=Digest(digest), segment=segment, status="judged")
    return wrap(data, source="judge")


class RingSimulation(RuleBasedStateMachine):
    """The ring, and every fault as a rule."""

    def __init__(self) -> None:
        super().__init__()
        self.crash_counter, self.clock, self.rng = CrashCounter(), Clock(), random.Random(0)
        self.store, self.bus = CrashingStore(self.crash_counter), CrashingBus(self.crash_counter, self.clock)
        self.recorded, self.nonce = 0, 0
        self.handlers = {
            name: DeliveryHandler(
                self.bus, Consumer(SUBSCRIPTIONS[name], handler), OutageDetector(self._store_available), self.rng
            )
            for name, handler in (("judge", self._judge), ("rewardmodel", self._count))
        }

    async def _store_available(self) -> bool:
        return not self.store.away

    async def _judge(self, event: Envelope) -> Sequence[Envelope]:
        """Judge with a random score: only the first score of a segment may count."""
        assert isinstance(event.data, SegmentReady)
        await self.store.get(event.data.key, event.data.digest)
        key = keys.score(RUN, 0, event.data.segment)
        try:
            digest = await self.store.create(key, str(self.rng.random()).encode())
        except AlreadyExists:
            digest = sha256(await self.store.get(key))
        return [scores_ready(event.data.segment, digest)]

    async def _count(self, event: Envelope) -> Sequence[Envelope]:
        assert isinstance(event.data, ScoresReady)
        score = await self.store.get(event.data.key, event.data.digest)
        try:
            await self.store.create(COUNTED + event.data.segment, score)
        except AlreadyExists:
            return []
        return []

    def _run_process(self, work: Any) -> None:
        """Run `work` as a process that may crash or find bus or store unavailable."""
        try:
            asyncio.run(work)
        except (Crash, Transient):
            pass
        finally:
            self.crash_counter.left = None

    @rule(crashes_at=CRASHES_AT)
    def record(self, crashes_at: int | None) -> None:
        """The trainer stores a segment and publishes its event; it may crash at any call."""
        self.crash_counter.left = crashes_at
        self._run_process(self._record(self.recorded))
        asyncio.run(self._recorded())

    async def _record(self, number: int) -> None:
        key = segment_ready(number, sha256(b"")).data.key
        digest = await self.store.create(key, b"segment %d" % number)
        await self.bus.publish(segment_ready(number, digest))

    async def _recorded(self) -> None:
        self.recorded = len(await self.store.inner.list(keys.segments_prefix(RUN, 0)))

    @rule(service=st.sampled_from(["judge", "rewardmodel"]), batch=st.integers(1, 4), crashes_at=CRASHES_AT)
    def deliver(self, service: str, batch: int, crashes_at: int | None) -> None:
        """A service fetches some events and handles them in random order; it may crash at any call."""
        self.crash_counter.left = crashes_at
        self._run_process(self._deliver(service, batch))

    async def _deliver(self, service: str, batch: int) -> int:
        deliveries = list(await self.bus.fetch(SUBSCRIPTIONS[service], batch, 0))
        self.rng.shuffle(deliveries)
        for delivery in deliveries:
            await self.handlers[service].handle(delivery)
        return len(deliveries)

    @rule(number=st.integers(0, 30))
    def repeat(self, number: int) -> None:
        """Publish an earlier event again, past the deduplication of the bus."""
        if self.recorded:
            self.nonce += 1
            self._run_process(self._repeat(number % self.recorded))

    async def _repeat(self, number: int) -> None:
        await self.bus.publish(segment_ready(number, sha256(b"segment %d" % number)), replay_nonce=self.nonce)

    @rule(seconds=st.floats(0, 700))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def purge(self) -> None:
        self.bus.purge()

    @rule(service=st.sampled_from(["judge", "rewardmodel"]))
    def consumer_vanishes(self, service: str) -> None:
        asyncio.run(self._renew(service))

    async def _renew(self, service: str) -> None:
        connected, self.bus.connected = self.bus.connected, True
        self.bus.delete_consumer(SUBSCRIPTIONS[service].name)
        await self.bus.ensure(SUBSCRIPTIONS[service])
        self.bus.connected = connected

    @rule(connected=MOSTLY_UP)
    def bus_comes_and_goes(self, connected: bool) -> None:
        self.bus.connected = connected

    @rule(here=MOSTLY_UP)
    def store_comes_and_goes(self, here: bool) -> None:
        self.store.away = not here

    @invariant()
    def no_score_without_its_segment_and_no_count_without_its_score(self) -> None:
        segments, scores, counted = asyncio.run(self._objects())
        assert set(scores) <= segments
        assert set(counted) <= set(scores)
        assert all(scores[name] == value for name, value in counted.items())

    async def _objects(self) -> tuple[set[str], dict[str, bytes], dict[str, bytes]]:
        segments = {_name(entry.key) for entry in await self.store.inner.list(keys.segments_prefix(RUN, 0))}
        scores = {
            _name(e.key): await self.store.inner.get(e.key)
            for e in await self.store.inner.list(keys.scores_prefix(RUN, 0))
        }
        counted = {_name(e.key): await self.store.inner.get(e.key) for e in await self.store.inner.list(COUNTED)}
        return segments, scores, counted

    def teardown(self) -> None:
        """After all faults are repaired, every segment is judged and counted exactly once."""
        self.bus.connected, self.store.away = True, False
        asyncio.run(self._finish())
        segments, scores, counted = asyncio.run(self._objects())
        assert segments == set(scores) == set(counted)
        assert scores == counted
        assert len(segments) == self.recorded

    async def _finish(self) -> None:
        for _ in range(4):
            await self._reconcile()
            self.clock.now += 700
            for service in SUBSCRIPTIONS:
                while await self._deliver(service, 64):
                    self.clock.now += 700

    async def _reconcile(self) -> None:
        """Republish the events of commit objects without a successor."""
        segments, scores, counted = await self._objects()
        self.nonce += 1
        for name in segments - set(scores):
            digest = sha256(b"segment %d" % int(name[1:]))
            await self.bus.publish(segment_ready(int(name[1:]), digest), replay_nonce=self.nonce)
        for name in set(scores) - set(counted):
            await self.bus.publish(scores_ready(SegmentId(name), sha256(scores[name])), replay_nonce=self.nonce)


def _name(key: str) -> str:
    return key.rpartition("/")[2].partition(".")[0]


TestRingSimulation = pytest.mark.slow(RingSimulation.TestCase)
RingSimulation.TestCase.settings = settings(max_examples=150, stateful_step_count=60)
