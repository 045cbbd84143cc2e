"""Looks up the judges' scores that exports need."""

from typing import Final

from shared.contracts.ids import RunId, SegmentId
from shared.contracts.scores import SegmentScores
from shared.process.bounded_cache import BoundedCache
from shared.state.scores import ScoreReader
from shared.store import keys
from shared.store.port import NotFound, Store

CACHED_EPOCHS: Final = 64  # the scores of an evicted epoch are read again


class ScoreLookup:
    """Reads scores. An unreadable score counts as missing, so that it does not block other segments."""

    def __init__(self, store: Store) -> None:
        self._reader = ScoreReader(store)
        self._weighted: BoundedCache[tuple[RunId, int], dict[str, float | None]] = BoundedCache(CACHED_EPOCHS)

    async def segment(self, run: RunId, epoch: int, segment: SegmentId) -> SegmentScores | None:
        """The scores of a segment; None if it has none yet or they are unreadable."""
        try:
            found = await self._reader.read(keys.score(run, epoch, segment))
        except NotFound:
            return None
        return None if found is None else found.scores

    async def weighted(self, run: RunId, epoch: int) -> list[float]:
        """Weighted scores of the epoch's segments so far; each object is read once."""
        known = self._weighted.get_or_make((run, epoch), dict)
        for key, found in (await self._reader.read_epoch(run, epoch, known)).items():
            known[key] = None if found is None else found.scores.weighted
        return [value for value in known.values() if value is not None]
