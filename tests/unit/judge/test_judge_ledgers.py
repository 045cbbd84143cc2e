"""Ledgers of many concurrent epochs: no spending and no row is lost, however many are open."""

import asyncio

import pytest

from services.judge.domain.ledger_rows import LedgerPart, SegmentRow
from services.judge.rules_server.settings import Behaviour
from services.judge.service.ledger_store import OPEN_LEDGERS, LedgerStore
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.contracts.judging.epoch_report import EpochJudging
from shared.contracts.scores import SegmentScores, Usage
from shared.errors import Transient
from shared.llm.budget import Budget, BudgetExhausted
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.judge.harness import OpenHarness
from tests.unit.judge.segment_factory import archive, recorded, walk

RUNS = [RunId(f"run-{number}") for number in range(OPEN_LEDGERS + 2)]
CALL = Usage(calls=1)


class FlakyStore(MemoryStore):
    """A store whose writes fail while it is `away` and take an hour while it is `slow`."""

    away = slow = False

    async def put(self, key: str, data: bytes) -> str:
        if self.away:
            raise Transient("the store is away")
        if self.slow:
            await asyncio.sleep(3_600)
        return await super().put(key, data)


class ConcurrentStore(MemoryStore):
    """A store in which another process flushes its ledger while the first report is being written."""

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


async def test_concurrent_epochs_keep_their_budgets_and_all_rows() -> None:
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


async def test_service_keeps_the_budget_of_each_of_many_runs(harness: OpenHarness) -> None:
    one = harness(Behaviour(latency_ms=10), cache_size=0, budget_calls=9, audit_share=1.0)
    events = [
        await recorded(one.store, archive(f"s{n}", {**walk(1 + n), 3: {"rupees": n}}, run=run), f"s{n}", run=run)
        for n in range(4)
        for run in RUNS
    ]
    await asyncio.gather(*(one.runtime.handlers.segment_ready(event) for event in events))
    await one.runtime.close()
    for run in RUNS:
        report = EpochJudging.from_bytes(await one.store.get(keys.judge_report(run, 0)))
        names = [entry.key for entry in await one.store.list(keys.scores_prefix(run, 0))]
        scores = [SegmentScores.from_bytes(await one.store.get(name)) for name in names]
        assert report.usage.calls == 9
        assert sum(result.usage.calls for one in scores for result in one.judges) <= 9
        assert sum(report.segments.values()) == 4


async def test_pinned_ledger_stays_open_and_the_least_recently_used_is_evicted() -> None:
    ledgers = open_ledgers(MemoryStore())
    used, first, second = [await ledgers.open(run, 0) for run in RUNS[:3]]
    with used.pinned():
        await ledgers.open(RUNS[1], 0)
        for run in RUNS[3:]:
            await ledgers.open(run, 0)
        assert await ledgers.open(RUNS[0], 0) is used
        assert await ledgers.open(RUNS[2], 0) is not second, "it was the least recently used one"
    assert await ledgers.open(RUNS[1], 0) is not first


async def test_unwritable_ledger_stays_open_until_it_is_written() -> None:
    store = FlakyStore()
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


async def test_spending_is_written_without_any_row() -> None:
    store = MemoryStore()
    ledgers = open_ledgers(store)
    ledger = await ledgers.open(RUNS[0], 0)
    ledger.budget.reserve(CALL)
    ledger.budget.settle("state", CALL, CALL)
    await ledgers.flush()
    assert (await part(store, RUNS[0])).usage == {"state": CALL}


async def test_concurrent_reports_merge_the_rows_of_both_processes() -> None:
    store = ConcurrentStore()
    first, second = (LedgerStore(store, f"judge-{number}", "default", Budget()) for number in range(2))
    for number, one in enumerate((first, second)):
        (await one.open(RUNS[0], 0)).record(row=row(number))
    store.other = second
    await first.flush()
    report = EpochJudging.from_bytes(await store.get(keys.judge_report(RUNS[0], 0)))
    assert report.segments == {"judged": 2}


async def test_cancelled_flush_is_repeated() -> None:
    store = FlakyStore()
    ledgers = open_ledgers(store)
    ledger = await ledgers.open(RUNS[0], 0)
    ledger.record(row=row(0))
    store.slow = True
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ledgers.flush(), 0.05)
    store.slow = False
    await ledgers.flush()
    assert len((await part(store, RUNS[0])).rows) == 1


async def test_final_flush_writes_what_a_cancelled_flush_did_not() -> None:
    store = FlakyStore()
    ledgers = open_ledgers(store)
    (await ledgers.open(RUNS[0], 0)).record(row=row(0))
    store.slow = True
    flush = asyncio.create_task(ledgers.flush())
    await asyncio.sleep(0.01)
    store.slow = False
    flush.cancel()
    await ledgers.flush()
    assert len((await part(store, RUNS[0])).rows) == 1


async def test_unreadable_ledger_starts_over() -> None:
    store = MemoryStore()
    await store.put(f"{keys.judge_reports_prefix(RUNS[0], 0, 'default')}judge-0.json", b"{")
    ledgers = open_ledgers(store)
    (await ledgers.open(RUNS[0], 0)).record(row=row(0))
    await ledgers.flush()
    assert len((await part(store, RUNS[0])).rows) == 1
