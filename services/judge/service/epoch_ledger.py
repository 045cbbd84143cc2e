"""The ledger of one epoch in this process: what judging cost, and the rows from which the report is built."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from services.judge.domain.ledger_rows import CanaryRow, LedgerPart, PairRow, SegmentRow
from shared.contracts.ids import RunId
from shared.llm.budget import Budget, BudgetTracker

FLUSH_IDLE_S = 1.0  # write after this long without a change; shorter, and every segment costs a write
FLUSH_LATEST_S = 5.0  # write at the latest after this long; longer, and a crash forgets more of the spending


class EpochLedger:
    """Spending and rows of one epoch of one run. Pin it while you spend or record."""

    def __init__(self, run: RunId, epoch: int, part: LedgerPart, budget: Budget) -> None:
        self.run, self.epoch = run, epoch
        self.budget = BudgetTracker(budget, dict(part.usage), on_change=self._mark_changed)
        self._rows = {row.segment: row for row in part.rows}
        self._pairs, self._canary = list(part.pairs), list(part.canary)
        self._replica, self.exhausted = part.replica, part.exhausted
        self.canaries_started = False
        self.pins = 0
        self.write_lock = asyncio.Lock()  # one write at a time: an older snapshot must not replace a newer one
        self.first_change: float | None = None  # monotonic; None when the store has everything
        self.last_change = 0.0

    def record(
        self, *, row: SegmentRow | None = None, pair: PairRow | None = None, canary: CanaryRow | None = None
    ) -> None:
        """Add rows. A second row of the same segment replaces the first."""
        if row is not None:
            self._rows[row.segment] = row
        if pair is not None:
            self._pairs.append(pair)
        if canary is not None:
            self._canary.append(canary)
        self._mark_changed()

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Prevent eviction: a second ledger of the same epoch would not know this one's spending."""
        self.pins += 1
        try:
            yield
        finally:
            self.pins -= 1

    def snapshot(self) -> LedgerPart:
        """Return the document that this process writes."""
        return LedgerPart(
            replica=self._replica,
            rows=list(self._rows.values()),
            pairs=self._pairs,
            canary=self._canary,
            usage=self.budget.by_payer,
            exhausted=self.exhausted or self.budget.exhausted,
        )

    def is_due(self, now: float) -> bool:
        """Whether the ledger should be written at `now` (monotonic seconds)."""
        if self.first_change is None:
            return False
        return now - self.last_change >= FLUSH_IDLE_S or now - self.first_change >= FLUSH_LATEST_S

    def is_evictable(self) -> bool:
        """Whether the ledger is unpinned and the store has all of it."""
        return not self.pins and not self.write_lock.locked() and self.first_change is None

    def _mark_changed(self) -> None:
        self.last_change = time.monotonic()
        self.first_change = self.first_change or self.last_change
