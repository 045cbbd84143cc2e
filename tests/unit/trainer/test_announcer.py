"""The announcer publishes each stored segment once and the epoch record last, also after a restart."""

import pytest

from services.trainer.announcer import Announcer
from services.trainer.handlers import Handlers
from services.trainer.supervisor.driver_supervisor import DriverSupervisor
from shared.bus.memory import MemoryBus
from shared.bus.topology import COORDINATOR_RUNS, JUDGE_SEGMENTS
from shared.contracts.base import sha256
from shared.contracts.envelope import Envelope, parse, wrap
from shared.contracts.events import RmReady
from shared.contracts.ids import Digest, RunId
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.trainer.run_fixtures import RUN, FakeBackend, account, order, run_in, segment


async def receive_events(bus: MemoryBus) -> tuple[list[Envelope], list[Envelope]]:
    """Events for the judge and for the coordinator, acknowledged."""
    found: tuple[list[Envelope], list[Envelope]] = ([], [])
    for subscription, events in zip((JUDGE_SEGMENTS, COORDINATOR_RUNS), found, strict=True):
        for delivery in await bus.fetch(subscription, 100, 0.01):
            events.append(parse(delivery.raw))
            await delivery.ack()
    return found


async def test_segments_are_announced_during_the_epoch_and_its_record_last() -> None:
    store, bus = MemoryStore(), MemoryBus()
    await run_in(store)
    await order(store)
    announcer = Announcer(store, bus)
    first = await segment(store, 1)
    await announcer.follow(RUN, fence=1)
    segments, accounts = await receive_events(bus)
    assert [(event.data.key, event.data.digest) for event in segments] == [(first.key, first.digest)]
    assert accounts == []
    second = await segment(store, 2)
    await account(store, [first, second])
    await announcer.follow(RUN, fence=1)
    segments, accounts = await receive_events(bus)
    assert [event.data.key for event in segments] == [second.key]
    assert [event.data.key for event in accounts] == [keys.epoch_finished(RUN, 0)]


async def test_a_restarted_announcer_repeats_the_last_epoch_record() -> None:
    store, bus = MemoryStore(), MemoryBus()
    await run_in(store)
    await order(store)
    await account(store, [await segment(store, 1)])
    await order(store, 1)
    await Announcer(store, bus).follow(RUN, fence=1)
    segments, accounts = await receive_events(bus)
    assert (len(segments), len(accounts)) == (1, 1)


async def test_a_damaged_epoch_record_does_not_affect_other_runs() -> None:
    store, bus = MemoryStore(), MemoryBus()
    damaged = RunId("damaged")
    await store.create(keys.epoch_start(damaged, 0), b"{}")
    await store.create(keys.epoch_finished(damaged, 0), b"no account")
    await run_in(store)
    await order(store)
    ref = await segment(store, 1)
    await Announcer(store, bus).follow_all({damaged: 1, RUN: 1})
    segments, _ = await receive_events(bus)
    assert [event.data.key for event in segments] == [ref.key]


@pytest.mark.parametrize("name", ["notes.txt", "Copy_of_notes/a.zip", "e0000-r00-v00-0001/notes.txt"])
async def test_objects_that_are_not_segments_are_skipped(name: str) -> None:
    store, bus = MemoryStore(), MemoryBus()
    await run_in(store)
    await order(store)
    ref = await segment(store, 1)
    await store.put(f"{keys.segments_prefix(RUN, 0)}{name}", b"x")
    await Announcer(store, bus).follow_all({RUN: 1})
    segments, _ = await receive_events(bus)
    assert [event.data.key for event in segments] == [ref.key]


class ArchiveReads(MemoryStore):
    """Counts how often each archive is downloaded."""

    def __init__(self) -> None:
        super().__init__()
        self.downloads: list[str] = []

    async def get(self, key: str, digest: str | None = None) -> bytes:
        if keys.segment_place(key) is not None:
            self.downloads.append(key)
        return await super().get(key, digest)


async def test_a_segment_is_announced_with_its_noted_digest_without_a_download() -> None:
    store, bus = ArchiveReads(), MemoryBus()
    await run_in(store)
    await order(store)
    ref = await segment(store, 1)
    for announcer in (Announcer(store, bus), Announcer(store, bus)):  # also after a restart
        await announcer.follow(RUN, fence=1)
    segments, _ = await receive_events(bus)
    assert {(event.data.key, event.data.digest) for event in segments} == {(ref.key, ref.digest)}
    assert store.downloads == []


async def test_an_archive_without_a_digest_note_is_hashed_once() -> None:
    store, bus = ArchiveReads(), MemoryBus()
    await run_in(store)
    await order(store)
    ref = await segment(store, 1, noted=False)
    announcer = Announcer(store, bus)
    await announcer.follow(RUN, fence=1)
    assert store.downloads == []  # its writer may be about to leave the note
    for _ in range(3):
        await announcer.follow(RUN, fence=1)
    segments, _ = await receive_events(bus)
    assert [(event.data.key, event.data.digest) for event in segments] == [(ref.key, ref.digest)]
    assert store.downloads == [ref.key]


async def test_the_announcer_moves_on_to_the_next_epoch() -> None:
    store, bus = MemoryStore(), MemoryBus()
    await run_in(store)
    announcer = Announcer(store, bus)
    for epoch in (0, 1):
        await order(store, epoch)
        ref = await segment(store, 1, epoch)
        await account(store, [ref], epoch)
        await announcer.follow(RUN, fence=1)
    segments, accounts = await receive_events(bus)
    assert [event.epoch for event in segments] == [event.epoch for event in accounts] == [0, 1]


async def test_an_ended_run_that_resumes_is_announced_from_the_store() -> None:
    store = MemoryStore()
    await run_in(store)
    await order(store)
    ref = await segment(store, 1)
    announcer = Announcer(store, MemoryBus())
    await announcer.follow_all({RUN: 1})
    await announcer.follow_all({})
    announcer.bus = bus = MemoryBus()  # nothing was published on it yet: a bus drops what it has seen
    await announcer.follow_all({RUN: 1})
    segments, _ = await receive_events(bus)
    assert [event.data.key for event in segments] == [ref.key]


async def test_an_event_with_a_stale_fence_is_refused() -> None:
    store = MemoryStore()
    await run_in(store)
    start = await order(store, fence=7)
    supervisor = DriverSupervisor(store, FakeBackend(), 3, lambda: 0.0)
    handlers = Handlers(store, supervisor)
    data = RmReady(run=RUN, epoch=0, key=keys.epoch_start(RUN, 0), digest=Digest(sha256(start.to_bytes())))
    await handlers.run_event(wrap(data, source="test", fence=7))
    await handlers.run_event(wrap(data, source="test", fence=6))
    assert supervisor.runs[RUN].fence == 7
