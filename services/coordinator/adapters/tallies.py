"""Counts score objects as they arrive; each is read once. Scores themselves are not kept in memory."""

import asyncio
from collections import OrderedDict
from typing import Final

from services.coordinator.domain.tally import Tally
from shared.contracts.ids import RunId, SegmentId
from shared.contracts.scores import SegmentScores
from shared.state.scores import ScoreReader
from shared.store import keys
from shared.store.port import Store

MOST: Final = 64  # epochs remembered over all runs; an older one is counted anew if somebody asks


class Tallies:
    """Tallies of epochs, brought up to date on demand."""

    def __init__(self, store: Store) -> None:
        self._reader = ScoreReader(store)
        self._kept: OrderedDict[tuple[RunId, int], Tally] = OrderedDict()
        self._lock = asyncio.Lock()

    async def of(self, run: RunId, epoch: int) -> Tally:
        """The tally of an epoch as it is in the store now."""
        async with self._lock:
            tally = self._kept.setdefault((run, epoch), Tally())
            self._kept.move_to_end((run, epoch))
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
            known = {keys.score(run, epoch, SegmentId(segment)) for segment in tally.outcomes}
            for found in (await self._reader.of_epoch(run, epoch, known)).values():
                if found is not None:
                    tally.add(found.scores)
            return tally

    async def read(self, run: RunId, epoch: int) -> list[SegmentScores]:
        """All readable scores of an epoch."""
        return [found.scores for found in (await self._reader.of_epoch(run, epoch)).values() if found is not None]
