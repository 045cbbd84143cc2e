"""Score objects out of the store. They are created once and never change, so each is read once."""

import asyncio
from dataclasses import dataclass

import structlog

from services.rewardmodel import telemetry
from services.rewardmodel.domain.ratings import Rating, rating
from shared.contracts.base import sha256
from shared.contracts.events import ScoreStatus
from shared.contracts.ids import RunId, SegmentId
from shared.contracts.scores import SegmentScores
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import Store

AT_ONCE = 16
MOST_RUNS = 16  # remembered; the oldest is read again when it comes back
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Scored:
    """What is known about one segment; `rating` only if it was judged."""

    segment: SegmentId
    status: ScoreStatus
    rating: Rating | None


class Scores:
    """Reads and remembers the score objects of runs."""

    def __init__(self, store: Store) -> None:
        """Nothing is read yet."""
        self._store = store
        self._known: dict[RunId, dict[int, dict[str, Scored | None]]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def of_epoch(self, run: RunId, epoch: int) -> list[Scored]:
        """All readable scores of an epoch."""
        if run not in self._known and len(self._known) >= MOST_RUNS:
            del self._known[next(iter(self._known))]
        known = self._known.setdefault(run, {}).setdefault(epoch, {})
        entries = await self._store.list(keys.scores_prefix(run, epoch))
        fresh = [entry.key for entry in entries if entry.key.endswith(".json") and entry.key not in known]
        for key, scored in zip(fresh, await asyncio.gather(*map(self._read, fresh)), strict=True):
            known[key] = scored
        return [scored for scored in known.values() if scored is not None]

    async def ratings(self, run: RunId, epoch: int) -> list[Rating]:
        """Ratings of all judged segments up to and including `epoch`."""
        epochs = [await self.of_epoch(run, number) for number in range(epoch + 1)]
        return [scored.rating for scores in epochs for scored in scores if scored.rating is not None]

    async def _read(self, key: str) -> Scored | None:
        async with self._slots:
            raw = await self._store.get(key)
        try:
            scores = SegmentScores.from_bytes(raw)
        except ContractError as error:
            # One damaged object must not hold up a run; its segment counts as missing and the card says so.
            telemetry.SKIPPED.labels("score").inc()
            log.error("score object refused", key=key, error=str(error))
            return None
        return Scored(scores.segment, scores.status, rating(scores, sha256(raw)))
