"""Counts score objects as they arrive; each is read once. Scores themselves are not kept in memory."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from services.coordinator.domain.tally import Tally
from shared.contracts.ids import RunId
from shared.contracts.scores import SegmentScores
from shared.state.scores import ScoreObject, ScoreReader
from shared.store.port import Entry, Store

MOST: Final = 256  # epochs remembered over all runs; an older one is counted anew if somebody asks


@dataclass(slots=True)
class _Counted:
    """A tally, and the objects that it counts. A damaged one is looked at again: somebody may mend it."""

    entries: set[Entry] = field(default_factory=set)
    tally: Tally = field(default_factory=Tally)

    def add(self, entry: Entry, score: ScoreObject | None) -> None:
        if score is not None:
            self.entries.add(entry)
            self.tally.add(score.scores)


class Tallies:
    """Tallies of epochs, brought up to date on demand."""

    def __init__(self, store: Store) -> None:
        self._reader = ScoreReader(store)
        self._kept: OrderedDict[tuple[RunId, int], _Counted] = OrderedDict()
        self._lock = asyncio.Lock()

    async def of(self, run: RunId, epoch: int) -> Tally:
        """The tally of an epoch as it is in the store now."""
        async with self._lock:
            listed = await self._reader.listed(run, epoch)
            counted = self._kept.get((run, epoch))
            if counted is None or not counted.entries <= set(listed):  # the run was deleted, and perhaps made again
                counted = self._kept[run, epoch] = _Counted()
            self._kept.move_to_end((run, epoch))
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
            found = await self._reader.of([entry for entry in listed if entry not in counted.entries])
            for entry, score in found.items():
                counted.add(entry, score)
            return counted.tally

    async def read(self, run: RunId, epoch: int) -> list[SegmentScores]:
        """All readable scores of an epoch."""
        return await self.readable(await self.listed(run, epoch))

    async def listed(self, run: RunId, epoch: int) -> list[Entry]:
        """The objects of an epoch, unread."""
        return await self._reader.listed(run, epoch)

    async def readable(self, entries: Sequence[Entry]) -> list[SegmentScores]:
        """The scores in these objects; a damaged one is left out, and the log names it."""
        return [found.scores for found in (await self._reader.of(entries)).values() if found is not None]
