"""The ledger of one epoch in this process: what judging cost, and the rows from which the report is built."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from services.judge.domain.budget import Budget, BudgetTracker
from services.judge.domain.ledger_rows import CanaryRow, LedgerPart, PairRow, SegmentRow
from shared.contracts.ids import RunId

FLUSH_IDLE_S = 1.0  # write after this long without a change; shorter, and every segment costs a write
FLUSH_LATEST_S = 5.0  # write at the latest after this long; longer, and a crash forgets more of the spending


class EpochLedger:
    """One epoch of one run: the ledger and this process's notes. Whoever spends or notes something holds it."""

    def __init__(self, run: RunId, epoch: int, part: LedgerPart, budget: Budget) -> None:
        self.run, self.epoch = run, epoch
        self.budget = BudgetTracker(budget, dict(part.usage), on_change=self._changed)
        self._rows = {row.segment: row for row in part.rows}
        self._pairs, self._canary = list(part.pairs), list(part.canary)
        self._replica, self.exhausted = part.replica, part.exhausted
        self.canaries_started = False
        self.pins = 0
        self.write_lock = asyncio.Lock()  # one write at a time: an older page must not come after a newer one
        self.first_change: float | None = None
        self.last_change = 0.0

    def record(
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
    def pinned(self) -> Iterator[None]:
        """Keep the book open: a second one of the same epoch would know nothing of what this one spends."""
        self.pins += 1
        try:
            yield
        finally:
            self.pins -= 1

    def snapshot(self) -> LedgerPart:
        """The notes as they are written."""
        return LedgerPart(
            replica=self._replica,
            rows=list(self._rows.values()),
            pairs=self._pairs,
            canary=self._canary,
            usage=self.budget.by_judge,
            exhausted=self.exhausted or self.budget.exhausted,
        )

    def due(self, now: float) -> bool:
        """Whether the book should be written now."""
        if self.first_change is None:
            return False
        return now - self.last_change >= FLUSH_IDLE_S or now - self.first_change >= FLUSH_LATEST_S

    def is_evictable(self) -> bool:
        """Whether nobody holds it and the store has all of it."""
        return not self.pins and not self.write_lock.locked() and self.first_change is None

    def _changed(self) -> None:
        self.last_change = time.monotonic()
        self.first_change = self.first_change or self.last_change
