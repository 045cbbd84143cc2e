"""What the judges said, out of the store. Score objects are created once and never change, so each is read once."""

import asyncio
from collections import OrderedDict
from typing import Final

import structlog

from shared.contracts.ids import RunId, SegmentId
from shared.contracts.scores import SegmentScores
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import NotFound, Store

AT_ONCE: Final = 16
MOST_EPOCHS: Final = 64  # remembered; another one is read again when it comes back
log = structlog.get_logger(__name__)


class Scores:
    """Reads scores. One that cannot be read is logged and counts as none: it must not hold up other segments."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._weighted: OrderedDict[tuple[RunId, int], dict[str, float | None]] = OrderedDict()
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def of(self, run: RunId, epoch: int, segment: SegmentId) -> SegmentScores | None:
        """What is known of a segment; its absence does not hold an export up."""
        try:
            return await self._read(keys.score(run, epoch, segment))
        except NotFound:
            return None

    async def weighted(self, run: RunId, epoch: int) -> list[float]:
        """Weighted scores of the epoch's segments so far."""
        known = self._weighted.setdefault((run, epoch), {})
        self._weighted.move_to_end((run, epoch))
        while len(self._weighted) > MOST_EPOCHS:
            self._weighted.popitem(last=False)
        entries = await self._store.list(keys.scores_prefix(run, epoch))
        fresh = [entry.key for entry in entries if entry.key not in known]
        for key, scores in zip(fresh, await asyncio.gather(*map(self._read, fresh)), strict=True):
            known[key] = None if scores is None else scores.weighted
        return [value for value in known.values() if value is not None]

    async def _read(self, key: str) -> SegmentScores | None:
        async with self._slots:
            raw = await self._store.get(key)
        try:
            return SegmentScores.from_bytes(raw)
        except ContractError as error:
            log.error("score object refused", key=key, error=str(error))
            return None
