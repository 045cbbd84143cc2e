"""Loads subsampled states from segment archives, and caches them: every epoch trains on old segments again."""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from services.rewardmodel import telemetry
from services.rewardmodel.domain.dataset import SegmentFeatures, pack_states, subsample
from services.rewardmodel.domain.ratings import Rating
from shared.errors import Permanent
from shared.game.recording.segment import read_segment
from shared.process.bounded_cache import BoundedCache
from shared.store.port import Store

PARALLEL_READS: Final = 8
log = structlog.get_logger(__name__)


class SegmentFeatureLoader:
    """Loads the states of segments in one view and caches them by the archive's digest (about 2 kB each)."""

    def __init__(self, store: Store, capacity: int, view: str) -> None:
        """`capacity` is the number of segments of one training; the cache holds twice as many."""
        self._store, self._view = store, view
        self._cache: BoundedCache[str, SegmentFeatures | None] = BoundedCache(2 * capacity)
        self._slots = asyncio.Semaphore(PARALLEL_READS)

    async def load(self, ratings: Sequence[Rating]) -> list[tuple[Rating, SegmentFeatures]]:
        """Load the rated segments. Archives that are unreadable or lack the view are left out."""
        loaded = await asyncio.gather(*map(self._get, ratings))
        return [(rating, features) for rating, features in zip(ratings, loaded, strict=True) if features is not None]

    async def _get(self, rating: Rating) -> SegmentFeatures | None:
        if rating.segment_digest in self._cache:
            return self._cache.get(rating.segment_digest)
        async with self._slots:
            return self._cache.put(rating.segment_digest, await self._read(rating))

    async def _read(self, rating: Rating) -> SegmentFeatures | None:
        try:
            raw = await self._store.get(rating.segment_key, rating.segment_digest)
            return await asyncio.to_thread(_extract, raw, self._view)
        except Permanent as error:  # deleted by retention, or damaged: the training uses the other segments
            telemetry.SKIPPED.labels("segment").inc()
            log.error("segment skipped", segment=rating.segment, error=str(error))
            return None


def _extract(raw: bytes, view: str) -> SegmentFeatures:
    segment = read_segment(raw)
    return SegmentFeatures(
        packed=pack_states(subsample(segment.states_in(view))),
        first_step=segment.manifest.first_step,
        steps=segment.manifest.steps,
        milestones=segment.manifest.milestones_end,
        view=view,
    )
