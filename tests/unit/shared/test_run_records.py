"""Listing runs costs what changed, and a listing is never older than its caller's last write."""

import asyncio
from collections import Counter
from datetime import UTC, datetime

import pytest
from prometheus_client import REGISTRY

from shared.contracts.events import RunState
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.errors import ContractError
from shared.state.deleted_runs import RunDeleted
from shared.state.runs import RECHECKED, SETTLED_S, RunRecords
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import ObjectEntry

NOW = datetime(2026, 11, 24, tzinfo=UTC)
STATES: tuple[RunState, ...] = ("created", "running", "stopping", "stopped", "finished", "failed")


class CountingStore(MemoryStore):
    """Counts the calls; `age_s` lets the objects be older than they are."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.age_s = 0.0
        super().__init__()

    async def get(self, key: str, digest: str | None = None) -> bytes:
        self.calls["get"] += 1
        return await super().get(key, digest)

    async def list(self, prefix: str) -> list[ObjectEntry]:
        self.calls["list"] += 1
        await asyncio.sleep(0)
        found = await super().list(prefix)
        return [ObjectEntry(entry.key, entry.size, entry.modified - self.age_s) for entry in found]


def record(number: int, state: RunState = "running", revision: int = 0) -> RunRecord:
    """One record of run `run-N`."""
    name = RunId(f"run-{number}")
    return RunRecord(run=name, revision=revision, state=state, config=RunConfig(), created=NOW, updated=NOW)


async def stored(number: int) -> tuple[CountingStore, RunRecords]:
    """A store with runs in every state that were last changed an hour ago."""
    store = CountingStore()
    runs = RunRecords(store)
    for index in range(number):
        await runs.create(record(index, STATES[index % len(STATES)]))
    store.age_s = 3_600.0
    return store, runs


async def test_listing_unchanged_runs_again_reads_a_bounded_number() -> None:
    store, runs = await stored(200)
    assert len(await runs.all()) == 200
    store.calls.clear()
    assert len(await runs.all()) == 200
    assert store.calls["get"] == RECHECKED
    assert store.calls["list"] == 1 + RECHECKED


async def test_concurrent_callers_share_listings() -> None:
    store, runs = await stored(30)
    await asyncio.gather(*(runs.all() for _ in range(50)))
    assert store.calls["get"] == 30


async def test_a_caller_never_gets_a_listing_from_before_its_own_write() -> None:
    _, runs = await stored(30)
    early = asyncio.create_task(runs.all())
    for _ in range(3):
        await asyncio.sleep(0)
    await runs.create(record(99))
    assert "run-99" in {found.run for found in await runs.all()}
    await early


async def test_a_change_by_another_process_is_seen() -> None:
    store, runs = await stored(40)
    await runs.all()
    store.age_s = SETTLED_S + 1
    await RunRecords(store).append(record(3, "running", revision=1))
    assert next(found for found in await runs.all() if found.run == "run-3").revision == 1


async def test_a_change_without_its_index_entry_is_seen_after_some_listings() -> None:
    store, runs = await stored(40)
    await runs.all()
    await store.create(keys.run_revision(RunId("run-3"), 1), record(3, "running", revision=1).to_bytes())
    seen = [next(found for found in await runs.all() if found.run == "run-3").revision for _ in range(4)]
    assert seen[-1] == 1


class ListedMeanwhile(MemoryStore):
    """A store in which a reader lists all runs just before the next revision is written, a second after its entry."""

    reader: RunRecords | None = None

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(lambda: self.now)

    async def create(self, key: str, data: bytes) -> str:
        if self.reader is not None:
            self.now += 1
            await self.reader.all()
        return await super().create(key, data)


async def test_a_listing_in_the_middle_of_a_change_does_not_hide_the_change() -> None:
    store = ListedMeanwhile()
    writer, reader = RunRecords(store), RunRecords(store, lambda: store.now)
    for number in range(3 * RECHECKED):
        await writer.create(record(number))
    store.now += SETTLED_S + 1
    await reader.all()
    store.reader = reader
    await writer.append(record(3, "stopped", revision=1))
    assert next(found for found in await reader.all() if found.run == "run-3").state == "stopped"


async def test_a_caller_that_gives_up_leaves_the_listing_to_the_others() -> None:
    _, runs = await stored(30)
    hasty, patient = asyncio.create_task(runs.all()), asyncio.create_task(runs.all())
    await asyncio.sleep(0)
    hasty.cancel()
    assert len(await patient) == 30
    assert hasty.cancelled()


async def test_a_damaged_run_that_was_deleted_is_no_longer_counted() -> None:
    store, runs = await stored(2)
    await store.put(keys.run_revision(RunId("run-1"), 1), b"{")
    assert [found.run for found in await runs.all()] == ["run-0"]
    assert REGISTRY.get_sample_value("zelda_runs_unreadable_records") == 1
    await store.delete(keys.run_index(RunId("run-1")))
    await runs.all()
    assert REGISTRY.get_sample_value("zelda_runs_unreadable_records") == 0


async def test_the_record_of_another_run_is_not_taken_for_this_ones() -> None:
    store, runs = await stored(2)
    await store.put(keys.run_revision(RunId("run-0"), 1), record(1, revision=1).to_bytes())
    with pytest.raises(ContractError, match=r"^Run run-0 cannot be read: .* is the record of run run-1\.$"):
        await runs.latest(RunId("run-0"))


async def test_the_name_of_a_deleted_run_cannot_be_created() -> None:
    store, runs = await stored(0)
    await store.put(keys.deleted_run(RunId("run-3")), b"run-3")
    with pytest.raises(RunDeleted, match=r"^Run run-3 was deleted and its name stays taken: choose another name\.$"):
        await runs.create(record(3))
    assert await store.list(keys.run_index_prefix()) == []
    await runs.create(record(4))
