"""What is known about the segments of runs: each score object is read once."""

from dataclasses import dataclass

from services.rewardmodel import telemetry
from services.rewardmodel.domain.ratings import Rating, rating
from shared.contracts.events import ScoreStatus
from shared.contracts.ids import RunId, SegmentId
from shared.state.scores import ScoreObject, ScoreReader
from shared.store.port import ObjectEntry, Store

CACHED_RUNS = 16  # remembered; the oldest is read again when it comes back


@dataclass(frozen=True, slots=True)
class SegmentOutcome:
    """What is known about one segment; `rating` only if it was judged."""

    segment: SegmentId
    status: ScoreStatus
    rating: Rating | None


class ScoreCache:
    """Reads and remembers the score objects of runs."""

    def __init__(self, store: Store) -> None:
        """Nothing is read yet."""
        self._reader = ScoreReader(store)
        self._known: dict[RunId, dict[int, dict[ObjectEntry, SegmentOutcome | None]]] = {}

    async def of_epoch(self, run: RunId, epoch: int) -> list[SegmentOutcome]:
        """All readable scores of an epoch."""
        if run not in self._known and len(self._known) >= CACHED_RUNS:
            del self._known[next(iter(self._known))]
        of_run = self._known.setdefault(run, {})  # held on to: while we read, other runs may take its place
        before = of_run.get(epoch, {})
        listed = await self._reader.list_epoch(run, epoch)
        initial_parameters = await self._reader.read_all([entry for entry in listed if entry not in before])
        # Only what is listed: scores of a deleted run must not teach the next one of that name.
        known = {entry: before[entry] if entry in before else _scored(initial_parameters[entry]) for entry in listed}
        of_run[epoch] = known
        return [scored for scored in known.values() if scored is not None]

    async def ratings(self, run: RunId, epoch: int) -> list[Rating]:
        """Ratings of all judged segments up to and including `epoch`."""
        epochs = [await self.of_epoch(run, number) for number in range(epoch + 1)]
        return [scored.rating for scores in epochs for scored in scores if scored.rating is not None]


def _scored(found: ScoreObject | None) -> SegmentOutcome | None:
    if found is None:
        # One damaged object must not hold up a run; its segment counts as missing and the card says so.
        telemetry.SKIPPED.labels("score").inc()
        return None
    return SegmentOutcome(found.scores.segment, found.scores.status, rating(found.scores, found.digest))
