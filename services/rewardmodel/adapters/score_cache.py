"""Reads and caches the score objects of runs: each object is read once."""

from dataclasses import dataclass
from typing import Final

from services.rewardmodel import telemetry
from services.rewardmodel.domain.ratings import Rating, rating_of
from shared.contracts.events import ScoreStatus
from shared.contracts.ids import RunId, SegmentId
from shared.process.bounded_cache import BoundedCache
from shared.state.scores import ScoreObject, ScoreReader
from shared.store.port import ObjectEntry, Store

CACHED_RUNS: Final = 16  # the scores of an evicted run are read again


@dataclass(frozen=True, slots=True)
class SegmentOutcome:
    """The outcome of judging one segment; `rating` is None unless it was judged."""

    segment: SegmentId
    status: ScoreStatus
    rating: Rating | None


class ScoreCache:
    """Outcomes by run and epoch."""

    def __init__(self, store: Store) -> None:
        self._reader = ScoreReader(store)
        self._runs: BoundedCache[RunId, dict[int, dict[ObjectEntry, SegmentOutcome | None]]] = BoundedCache(CACHED_RUNS)

    async def epoch(self, run: RunId, epoch: int) -> list[SegmentOutcome]:
        """All readable outcomes of an epoch."""
        epochs = self._runs.get_or_make(run, dict)  # keep this reference: the run may be evicted during the reads
        cached = epochs.get(epoch, {})
        listed = await self._reader.list_epoch(run, epoch)
        fresh = await self._reader.read_all([entry for entry in listed if entry not in cached])
        # Keep listed entries only: scores that were deleted, with their run or by hand, must not count.
        outcomes = {entry: cached[entry] if entry in cached else _outcome(fresh[entry]) for entry in listed}
        epochs[epoch] = outcomes
        return [outcome for outcome in outcomes.values() if outcome is not None]

    async def ratings(self, run: RunId, epoch: int) -> list[Rating]:
        """Ratings of all judged segments up to and including `epoch`."""
        epochs = [await self.epoch(run, number) for number in range(epoch + 1)]
        return [outcome.rating for outcomes in epochs for outcome in outcomes if outcome.rating is not None]


def _outcome(found: ScoreObject | None) -> SegmentOutcome | None:
    if found is None:
        # A damaged object must not block a run: its segment counts as missing, which the card shows.
        telemetry.SKIPPED.labels("score").inc()
        return None
    return SegmentOutcome(found.scores.segment, found.scores.status, rating_of(found.scores, found.digest))
