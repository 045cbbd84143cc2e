"""Keeps the ledgers of epochs in the store, so that a restart continues them, and merges them into the report.

Every process writes its own part; each write merges all parts into the epoch's report. Scores never depend on it.
"""

import asyncio
import time
from collections import OrderedDict
from datetime import UTC, datetime

import structlog

from services.judge import telemetry
from services.judge.domain.ledger_rows import LedgerPart
from services.judge.domain.report import build_report
from services.judge.service.epoch_ledger import EpochLedger
from shared.contracts.ids import RunId
from shared.contracts.judging.epoch_report import EpochJudging
from shared.errors import ContractError, ZeldaError
from shared.llm.budget import Budget
from shared.store import keys
from shared.store.port import NotFound, Store

FLUSH_CHECK_S = 0.25  # pause between two checks for ledgers that are due
MERGE_ATTEMPTS = 3  # merges in a row while other processes write; more, and the next ledger waits too long
OPEN_LEDGERS = 4  # epochs in memory, pinned ones excepted; fewer, and ledgers are read again and again

log = structlog.get_logger(__name__)


class LedgerStore:
    """All open ledgers of this process."""

    def __init__(self, store: Store, replica: str, rubric: str, budget: Budget) -> None:
        self._store, self._replica, self._rubric, self._budget = store, replica, rubric, budget
        self._open: OrderedDict[tuple[RunId, int], EpochLedger] = OrderedDict()  # least recently used first
        self._opening = asyncio.Lock()

    async def open(self, run: RunId, epoch: int) -> EpochLedger:
        """Return the epoch's ledger, continued from the store. The caller must pin it before its next await."""
        async with self._opening:
            ledger = self._open.get((run, epoch))
            if ledger is None:
                await self._evict()
                part = await self._read(self._part_key(run, epoch)) or LedgerPart(replica=self._replica)
                ledger = self._open[run, epoch] = EpochLedger(run, epoch, part, self._budget)
            self._open.move_to_end((run, epoch))
        return ledger

    async def run_flush_loop(self) -> None:
        """Write due ledgers until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_CHECK_S)
            await self.flush(only_due=True)

    async def flush(self, *, only_due: bool = False) -> None:
        """Write all changed ledgers; with `only_due`, those that are due."""
        now = time.monotonic()
        for ledger in list(self._open.values()):
            if not only_due or ledger.is_due(now):
                await self._write(ledger)

    async def _write(self, ledger: EpochLedger) -> None:
        async with ledger.write_lock:  # if the holder is cancelled, we write its changes as well
            began, ledger.first_change = ledger.first_change, None
            if began is None:
                return
            try:
                await self._store.put(self._part_key(ledger.run, ledger.epoch), ledger.snapshot().to_bytes())
                await self._merge_report(ledger.run, ledger.epoch)
                began = None
            except ZeldaError as error:
                log.warning("report write failed", run=ledger.run, epoch=ledger.epoch, error=str(error))
            finally:  # the next flush writes what this one did not, whether it failed or was cancelled
                ledger.first_change = began or ledger.first_change

    async def _merge_report(self, run: RunId, epoch: int) -> None:
        """Merge all parts; repeat if one changed meanwhile, because our report may have replaced a newer one."""
        prefix = keys.judge_reports_prefix(run, epoch, self._rubric)
        entries = await self._store.list(prefix)
        for _ in range(MERGE_ATTEMPTS):
            parts = [await self._read(entry.key) for entry in entries]
            known = [part for part in parts if part is not None]
            merged = build_report(run, epoch, self._rubric, known, datetime.now(UTC))
            await self._store.put(keys.judge_report(run, epoch, self._rubric), merged.to_bytes())
            export_metrics(merged)
            before, entries = entries, await self._store.list(prefix)
            if entries == before:
                return

    async def _read(self, key: str) -> LedgerPart | None:
        try:
            return LedgerPart.from_bytes(await self._store.get(key))
        except NotFound:
            return None
        except ContractError as error:  # start over: earlier rows and spending are lost, judging continues
            log.error("ledger unreadable", key=key, error=str(error))
            return None

    async def _evict(self) -> None:
        """Make room for one ledger: write and drop the least recently used ones; pinned ones stay."""
        for key, ledger in list(self._open.items()):
            if len(self._open) < OPEN_LEDGERS:
                return
            if not ledger.pins and ledger.first_change is not None:
                await self._write(ledger)
            if ledger.is_evictable():
                del self._open[key]

    def _part_key(self, run: RunId, epoch: int) -> str:
        return f"{keys.judge_reports_prefix(run, epoch, self._rubric)}{self._replica}.json"


def export_metrics(merged: EpochJudging) -> None:
    """Set the gauges of the report's run. Unknown values keep their gauge unset."""
    run = merged.run
    telemetry.OF_RUNS.show(run)
    for name, judge in merged.judges.items():
        alphas = [value for value in judge.alpha.values() if value is not None]
        if judge.unanimous is not None:
            telemetry.AGREEMENT.labels(run, name).set(judge.unanimous)
        if alphas:
            telemetry.ALPHA.labels(run, name).set(sum(alphas) / len(alphas))
        if judge.drift is not None:
            telemetry.DRIFT.labels(run, name).set(judge.drift)
        for when, value in (("segment", judge.correlation.segment), ("next", judge.correlation.next)):
            if value is not None:
                telemetry.CORRELATION.labels(run, name, when).set(value)
    if merged.pairs.bias is not None:
        telemetry.POSITION_BIAS.labels(run).set(merged.pairs.bias)
    if merged.pairs.consistent is not None:
        telemetry.INCONSISTENT.labels(run).set(1 - merged.pairs.consistent)
    telemetry.EXHAUSTED.labels(run).set(merged.budget_exhausted)
