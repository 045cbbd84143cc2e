"""Counts score objects as they arrive; each object is read once. The scores themselves are not kept in memory."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from services.coordinator.domain.score_counter import ScoreCounter
from shared.contracts.ids import RunId
from shared.contracts.scores import SegmentScores
from shared.process.bounded_cache import BoundedCache
from shared.state.scores import ScoreObject, ScoreReader
from shared.store.port import ObjectEntry, Store

MAX_EPOCHS: Final = 256  # cached epochs over all runs; an older one is counted again on demand


@dataclass(slots=True)
class _CountedEpoch:
    """A counter and the objects in it. A damaged object is not in it: it is read again, because it may be repaired."""

    entries: set[ObjectEntry] = field(default_factory=set)
    counter: ScoreCounter = field(default_factory=ScoreCounter)

    def add(self, entry: ObjectEntry, score: ScoreObject | None) -> None:
        if score is not None:
            self.entries.add(entry)
            self.counter.add(score.scores)


class ScoreCounters:
    """The counter of each epoch, updated on demand."""

    def __init__(self, store: Store) -> None:
        self._reader = ScoreReader(store)
        self._cached: BoundedCache[tuple[RunId, int], _CountedEpoch] = BoundedCache(MAX_EPOCHS)
        self._lock = asyncio.Lock()

    async def count(self, run: RunId, epoch: int) -> ScoreCounter:
        """The counter of an epoch, with every score object that is in the store now."""
        async with self._lock:
            listed = await self._reader.list_epoch(run, epoch)
            counted = self._cached.get((run, epoch))
            if counted is None or not counted.entries <= set(listed):  # objects were deleted
                counted = self._cached.put((run, epoch), _CountedEpoch())
            found = await self._reader.read_all([entry for entry in listed if entry not in counted.entries])
            for entry, score in found.items():
                counted.add(entry, score)
            return counted.counter

    async def read_epoch(self, run: RunId, epoch: int) -> list[SegmentScores]:
        """All readable scores of an epoch."""
        return await self.read_all(await self.list_epoch(run, epoch))

    async def list_epoch(self, run: RunId, epoch: int) -> list[ObjectEntry]:
        """The score objects of an epoch, unread."""
        return await self._reader.list_epoch(run, epoch)

    async def read_all(self, entries: Sequence[ObjectEntry]) -> list[SegmentScores]:
        """The scores in these objects. A damaged object is logged and left out."""
        return [found.scores for found in (await self._reader.read_all(entries)).values() if found is not None]
