"""What the judges said, as far as exports need it."""

from typing import Final

from shared.contracts.ids import RunId, SegmentId
from shared.contracts.scores import SegmentScores
from shared.process.bounded_cache import BoundedCache
from shared.state.scores import ScoreReader
from shared.store import keys
from shared.store.port import NotFound, Store

MOST_EPOCHS: Final = 64  # remembered; another one is read again when it comes back


class Scores:
    """Reads scores. One that cannot be read counts as none: it must not hold up other segments."""

    def __init__(self, store: Store) -> None:
        self._reader = ScoreReader(store)
        self._weighted: BoundedCache[tuple[RunId, int], dict[str, float | None]] = BoundedCache(MOST_EPOCHS)

    async def of(self, run: RunId, epoch: int, segment: SegmentId) -> SegmentScores | None:
        """What is known of a segment; its absence does not hold an export up."""
        try:
            found = await self._reader.read(keys.score(run, epoch, segment))
        except NotFound:
            return None
        return None if found is None else found.scores

    async def weighted(self, run: RunId, epoch: int) -> list[float]:
        """Weighted scores of the epoch's segments so far; each object is read once."""
        known = self._weighted.get_or_make((run, epoch), dict)
        for key, found in (await self._reader.of_epoch(run, epoch, known)).items():
            known[key] = None if found is None else found.scores.weighted
        return [value for value in known.values() if value is not None]
