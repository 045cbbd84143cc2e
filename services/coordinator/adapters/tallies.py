"""Counts score objects as they arrive; each is read once. Scores themselves are not kept in memory."""

import asyncio
from collections import OrderedDict
from collections.abc import Set as AbstractSet
from typing import Final

import structlog

from services.coordinator.domain.tally import Tally
from shared.contracts.ids import RunId
from shared.contracts.scores import SegmentScores
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import Store

MOST: Final = 64  # epochs remembered over all runs; an older one is counted anew if somebody asks
PARALLEL: Final = 16  # reads at once: a store answers them together, more would only queue there

log = structlog.get_logger(__name__)


class Tallies:
    """Tallies of epochs, brought up to date on demand."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[RunId, int], Tally] = OrderedDict()
        self._lock = asyncio.Lock()

    async def of(self, run: RunId, epoch: int) -> Tally:
        """The tally of an epoch as it is in the store now."""
        async with self._lock:
            tally = self._kept.setdefault((run, epoch), Tally())
            self._kept.move_to_end((run, epoch))
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
            for scores in await self.read(run, epoch, skip=set(tally.outcomes)):
                tally.add(scores)
            return tally

    async def read(self, run: RunId, epoch: int, skip: AbstractSet[str] = frozenset()) -> list[SegmentScores]:
        """Readable scores of an epoch, but those of the segments in `skip`."""
        found = [entry.key for entry in await self._store.list(keys.scores_prefix(run, epoch))]
        wanted = [key for key in found if key.rpartition("/")[2].removesuffix(".json") not in skip]
        gate = asyncio.Semaphore(PARALLEL)

        async def one(key: str) -> SegmentScores | None:
            async with gate:
                raw = await self._store.get(key)
            try:
                return SegmentScores.from_bytes(raw)
            except ContractError as error:  # its segment counts as missing; a run must not stand still for one object
                log.error("score object refused", key=key, error=str(error))
                return None

        return [scores for scores in await asyncio.gather(*map(one, wanted)) if scores is not None]
