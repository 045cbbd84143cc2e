"""The books of many epochs at once: nothing spent or noted is forgotten, however many are open."""

import asyncio

import pytest

from services.judge.domain.budget import Budget, BudgetExhausted
from services.judge.domain.ledger_rows import LedgerPart, SegmentRow
from services.judge.rules_server.settings import Behaviour
from services.judge.service.ledger_store import OPEN_LEDGERS, LedgerStore
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.contracts.judging import EpochJudging
from shared.contracts.scores import SegmentScores, Usage
from shared.errors import Transient
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.judge.harness import OpenHarness
from tests.unit.judge.segment_factory import archive, recorded, walk

RUNS = [RunId(f"run-{number}") for number in range(OPEN_LEDGERS + 2)]
CALL = Usage(calls=1)


class Moody(MemoryStore):
    """A store that takes nothing while it is `away`, and in an hour while it is `slow`."""

    away = slow = False

    async def put(self, key: str, data: bytes) -> str:
        if self.away:
            raise Transient("the store is away")
        if self.slow:
            await asyncio.sleep(3_600)
        return await super().put(key, data)


class Crossing(MemoryStore):
    """A store in which another process writes its book while the first report is on its way."""

    other: LedgerStore | None = None

    async def put(self, key: str, data: bytes) -> str:
        if key == keys.judge_report(RUNS[0], 0) and self.other is not None:
            other, self.other = self.other, None
            await other.flush()
        return await super().put(key, data)


def row(number: int) -> SegmentRow:
    return SegmentRow(segment=SegmentId(f"s{number}"), episode=EpisodeId("e1"), index=number, gained=0, status="judged")


def open_ledgers(store: MemoryStore, budget: Budget | None = None) -> LedgerStore:
    return LedgerStore(store, "judge-0", "default", budget or Budget())


async def part(store: MemoryStore, run: RunId) -> LedgerPart:
    return LedgerPart.from_bytes(await store.get(f"{keys.judge_reports_prefix(run, 0, 'default')}judge-0.json"))


async def test_with_many_epochs_at_once_each_keeps_to_its_budget_and_its_notes_are_whole() -> None:
    store, spent = MemoryStore(), dict.fromkeys(RUNS, 0)
    ledgers = open_ledgers(store, Budget(calls=10))

    async def segment(run: RunId, number: int) -> None:
        ledger = await ledgers.open(run, 0)
        with ledger.pinned():
            try:
                ledger.budget.reserve(CALL)
            except BudgetExhausted:
                return
            await asyncio.sleep(0.001)  # the model answers
            ledger.budget.settle("state", CALL, CALL)
            spent[run] += 1
            ledger.record(row=row(number))

    for number in range(20):
        await asyncio.gather(*(segment(run, number) for run in RUNS))
    await ledgers.flush()
    assert spent == dict.fromkeys(RUNS, 10)
    for run in RUNS:
        written = await part(store, run)
        assert written.usage["state"].calls == 10
        assert len(written.rows) == 10


async def test_the_service_keeps_to_the_budget_of_each_of_many_runs(harness: OpenHarness) -> None:
    one = harness(Behaviour(latency_ms=10), cache_size=0, budget_calls=9, audit_share=1.0)
    events = [
        await recorded(one.store, archive(f"s{n}", {**walk(1 + n), 3: {"rupees": n}}, run=run), f"s{n}", run=run)
        for n in range(4)
        for run in RUNS
    ]
    await asyncio.gather(*(one.runtime.handlers.segment_ready(event) for event in events))
    await one.runtime.close()
    for run in RUNS:
        told = EpochJudging.from_bytes(await one.store.get(keys.judge_report(run, 0)))
        names = [entry.key for entry in await one.store.list(keys.scores_prefix(run, 0))]
        scores = [SegmentScores.from_bytes(await one.store.get(name)) for name in names]
        assert told.usage.calls == 9
        assert sum(result.usage.calls for one in scores for result in one.judges) <= 9
        assert sum(told.segments.values()) == 4


async def test_a_book_in_use_stays_open_and_the_one_unused_for_longest_is_closed_first() -> None:
    ledgers = open_ledgers(MemoryStore())
    used, first, second = [await ledgers.open(run, 0) for run in RUNS[:3]]
    with used.pinned():
        await ledgers.open(RUNS[1], 0)
        for run in RUNS[3:]:
            await ledgers.open(run, 0)
        assert await ledgers.open(RUNS[0], 0) is used
        assert await ledgers.open(RUNS[2], 0) is not second, "it was not used for longest"
    assert await ledgers.open(RUNS[1], 0) is not first


async def test_a_book_that_cannot_be_written_stays_open_until_it_can() -> None:
    store = Moody()
    ledgers = open_ledgers(store)
    ledger = await ledgers.open(RUNS[0], 0)
    ledger.record(row=row(0))
    store.away = True
    for run in RUNS[1:]:
        await ledgers.open(run, 0)
    assert await ledgers.open(RUNS[0], 0) is ledger
    store.away = False
    await ledgers.flush()
    assert len((await part(store, RUNS[0])).rows) == 1


async def test_what_is_spent_is_written_even_if_nothing_is_noted() -> None:
    store = MemoryStore()
    ledgers = open_ledgers(store)
    ledger = await ledgers.open(RUNS[0], 0)
    ledger.budget.reserve(CALL)
    ledger.budget.settle("state", CALL, CALL)
    await ledgers.flush()
    assert (await part(store, RUNS[0])).usage == {"state": CALL}


async def test_a_report_that_crosses_another_process_has_the_notes_of_both() -> None:
    store = Crossing()
    first, second = (LedgerStore(store, f"judge-{number}", "default", Budget()) for number in range(2))
    for number, one in enumerate((first, second)):
        (await one.open(RUNS[0], 0)).record(row=row(number))
    store.other = second
    await first.flush()
    told = EpochJudging.from_bytes(await store.get(keys.judge_report(RUNS[0], 0)))
    assert told.segments == {"judged": 2}


async def test_a_write_that_is_cancelled_is_made_up_for() -> None:
    store = Moody()
    ledgers = open_ledgers(store)
    ledger = await ledgers.open(RUNS[0], 0)
    ledger.record(row=row(0))
    store.slow = True
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ledgers.flush(), 0.05)
    store.slow = False
    await ledgers.flush()
    assert len((await part(store, RUNS[0])).rows) == 1


async def test_the_last_write_makes_up_for_one_that_is_cancelled_beside_it() -> None:
    store = Moody()
    ledgers = open_ledgers(store)
    (await ledgers.open(RUNS[0], 0)).record(row=row(0))
    store.slow = True
    keeping = asyncio.create_task(ledgers.flush())
    await asyncio.sleep(0.01)
    store.slow = False
    keeping.cancel()
    await ledgers.flush()
    assert len((await part(store, RUNS[0])).rows) == 1


async def test_a_book_that_cannot_be_read_is_begun_again() -> None:
    store = MemoryStore()
    await store.put(f"{keys.judge_reports_prefix(RUNS[0], 0, 'default')}judge-0.json", b"{")
    ledgers = open_ledgers(store)
    (await ledgers.open(RUNS[0], 0)).record(row=row(0))
    await ledgers.flush()
    assert len((await part(store, RUNS[0])).rows) == 1
