"""The books of an epoch: what it cost and how good the judging was, kept in the store so that a restart goes on.

Every process writes its own part; whoever writes merges all parts into the epoch's report. Scores never depend on it.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import structlog

from services.judge import telemetry
from services.judge.domain.budget import Budget, Ledger
from services.judge.domain.report import report
from services.judge.domain.rows import CanaryRow, PairRow, Part, SegmentRow
from shared.contracts.ids import RunId
from shared.contracts.judging import EpochJudging
from shared.errors import ContractError, ZeldaError
from shared.store import keys
from shared.store.port import NotFound, Store

QUIET_S = 1.0  # a book is written when nothing was added for so long; shorter and every segment costs a write
LONGEST_S = 5.0  # or after so long; longer and a crash forgets more of the spending
MERGES = 3  # times a report is merged in a row while others write, too; more and our own part would wait for too long
KEPT = 4  # epochs kept in memory, more only while more are in use; too few and books are read again and again

log = structlog.get_logger(__name__)


class Book:
    """One epoch of one run: the ledger and this process's notes. Whoever spends or notes something holds it."""

    def __init__(self, run: RunId, epoch: int, part: Part, budget: Budget) -> None:
        self.run, self.epoch = run, epoch
        self.ledger = Ledger(budget, dict(part.usage), settled=self._changed)
        self._rows = {row.segment: row for row in part.rows}
        self._pairs, self._canary = list(part.pairs), list(part.canary)
        self._replica, self.exhausted = part.replica, part.exhausted
        self.canary_asked = False
        self.holders = 0
        self.pen = asyncio.Lock()  # one write at a time: an older page must not come after a newer one
        self.first_change: float | None = None
        self.last_change = 0.0

    def note(
        self, *, row: SegmentRow | None = None, pair: PairRow | None = None, canary: CanaryRow | None = None
    ) -> None:
        """Add to the notes."""
        if row is not None:
            self._rows[row.segment] = row
        if pair is not None:
            self._pairs.append(pair)
        if canary is not None:
            self._canary.append(canary)
        self._changed()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the book open: a second one of the same epoch would know nothing of what this one spends."""
        self.holders += 1
        try:
            yield
        finally:
            self.holders -= 1

    def part(self) -> Part:
        """The notes as they are written."""
        return Part(
            replica=self._replica,
            rows=list(self._rows.values()),
            pairs=self._pairs,
            canary=self._canary,
            usage=self.ledger.by_judge,
            exhausted=self.exhausted or self.ledger.exhausted,
        )

    def due(self, now: float) -> bool:
        """Whether the book should be written now."""
        if self.first_change is None:
            return False
        return now - self.last_change >= QUIET_S or now - self.first_change >= LONGEST_S

    def at_rest(self) -> bool:
        """Whether nobody holds it and the store has all of it."""
        return not self.holders and not self.pen.locked() and self.first_change is None

    def _changed(self) -> None:
        self.last_change = time.monotonic()
        self.first_change = self.first_change or self.last_change


class Books:
    """All open books of this process."""

    def __init__(self, store: Store, replica: str, rubric: str, budget: Budget) -> None:
        self._store, self._replica, self._rubric, self._budget = store, replica, rubric, budget
        self._open: OrderedDict[tuple[RunId, int], Book] = OrderedDict()  # the last used one at the end
        self._opening = asyncio.Lock()

    async def book(self, run: RunId, epoch: int) -> Book:
        """The book of an epoch, continued from the store if it is not open. To be held at once, without a pause."""
        async with self._opening:
            book = self._open.get((run, epoch))
            if book is None:
                await self._close_old()
                part = await self._read(self._part_key(run, epoch)) or Part(replica=self._replica)
                book = self._open[run, epoch] = Book(run, epoch, part, self._budget)
            self._open.move_to_end((run, epoch))
        return book

    async def keep(self) -> None:
        """Write due books, for ever."""
        while True:
            await asyncio.sleep(0.25)
            await self.write(only_due=True)

    async def write(self, *, only_due: bool = False) -> None:
        """Write the changed books; with `only_due`, those that rested or waited long enough."""
        now = time.monotonic()
        for book in list(self._open.values()):
            if not only_due or book.due(now):
                await self._write(book)

    async def _write(self, book: Book) -> None:
        async with book.pen:  # a write that is cancelled while we wait for the pen leaves its changes to us
            began, book.first_change = book.first_change, None
            if began is None:
                return
            try:
                await self._store.put(self._part_key(book.run, book.epoch), book.part().to_bytes())
                await self._report(book.run, book.epoch)
                began = None
            except ZeldaError as error:
                log.warning("report not written", run=book.run, epoch=book.epoch, error=str(error))
            finally:  # what was not written, for whatever reason, is written the next time
                book.first_change = began or book.first_change

    async def _report(self, run: RunId, epoch: int) -> None:
        """Merge all parts; again, if one was written meanwhile: our report may have replaced the one that has it."""
        prefix = keys.judge_reports_prefix(run, epoch, self._rubric)
        entries = await self._store.list(prefix)
        for _ in range(MERGES):
            parts = [await self._read(entry.key) for entry in entries]
            known = [part for part in parts if part is not None]
            merged = report(run, epoch, self._rubric, known, datetime.now(UTC))
            await self._store.put(keys.judge_report(run, epoch, self._rubric), merged.to_bytes())
            show(merged)
            before, entries = entries, await self._store.list(prefix)
            if entries == before:
                return

    async def _read(self, key: str) -> Part | None:
        try:
            return Part.from_bytes(await self._store.get(key))
        except NotFound:
            return None
        except ContractError as error:  # begun again: notes and spending before are lost, judging is not
            log.error("notes not readable", key=key, error=str(error))
            return None

    async def _close_old(self) -> None:
        """Make room for one more by closing the books that nobody used for longest; those in use stay."""
        for key, book in list(self._open.items()):
            if len(self._open) < KEPT:
                return
            if not book.holders and book.first_change is not None:
                await self._write(book)
            if book.at_rest():
                del self._open[key]

    def _part_key(self, run: RunId, epoch: int) -> str:
        return f"{keys.judge_reports_prefix(run, epoch, self._rubric)}{self._replica}.json"


def show(merged: EpochJudging) -> None:
    """The report as metrics. What is unknown is not shown."""
    for name, judge in merged.judges.items():
        alphas = [value for value in judge.alpha.values() if value is not None]
        if judge.unanimous is not None:
            telemetry.AGREEMENT.labels(name).set(judge.unanimous)
        if alphas:
            telemetry.ALPHA.labels(name).set(sum(alphas) / len(alphas))
        if judge.drift is not None:
            telemetry.DRIFT.labels(name).set(judge.drift)
        for when, value in (("segment", judge.correlation.segment), ("next", judge.correlation.next)):
            if value is not None:
                telemetry.CORRELATION.labels(name, when).set(value)
    if merged.pairs.bias is not None:
        telemetry.POSITION_BIAS.set(merged.pairs.bias)
    if merged.pairs.consistent is not None:
        telemetry.INCONSISTENT.set(1 - merged.pairs.consistent)
    telemetry.EXHAUSTED.set(merged.budget_exhausted)
