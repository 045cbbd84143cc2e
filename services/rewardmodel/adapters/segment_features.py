"""States out of segment archives: thinned, and remembered by digest, because every epoch trains on old ones, too."""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from services.rewardmodel import telemetry
from services.rewardmodel.domain.dataset import SegmentFeatures, packed, subsample
from services.rewardmodel.domain.ratings import Rating
from shared.errors import Permanent
from shared.game.recording.segment import read_segment
from shared.rewardnet import WIDTH
from shared.store.port import Store

AT_ONCE: Final = 8
log = structlog.get_logger(__name__)


class SegmentFeatureLoader:
    """Reads recordings; keeps the last `capacity` of them (about 2 kB each)."""

    def __init__(self, store: Store, capacity: int) -> None:
        """`capacity` should hold the segments of one training."""
        self._store, self._capacity = store, capacity
        self._known: dict[str, SegmentFeatures | None] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def of(self, ratings: Sequence[Rating], observation: str) -> list[tuple[Rating, SegmentFeatures]]:
        """The ratings whose archive could be read and has this observation layout, each with its recording."""
        found = await asyncio.gather(*map(self._get, ratings))
        while len(self._known) > 2 * self._capacity:
            del self._known[next(iter(self._known))]
        return [
            (rating, recording)
            for rating, recording in zip(ratings, found, strict=True)
            if recording is not None and recording.observation == observation
        ]

    async def _get(self, rating: Rating) -> SegmentFeatures | None:
        if rating.segment_digest not in self._known:
            async with self._slots:
                self._known[rating.segment_digest] = await self._read(rating)
        return self._known[rating.segment_digest]

    async def _read(self, rating: Rating) -> SegmentFeatures | None:
        try:
            raw = await self._store.get(rating.segment_key, rating.segment_digest)
            return await asyncio.to_thread(_unpack, raw)
        except Permanent as error:  # gone by retention, or damaged: the others still teach
            telemetry.SKIPPED.labels("segment").inc()
            log.error("segment not usable", segment=rating.segment, error=str(error))
            return None


def _unpack(raw: bytes) -> SegmentFeatures:
    segment = read_segment(raw)
    if segment.observations.shape[1] != WIDTH:
        raise Permanent(f"segment {segment.manifest.segment}: {segment.observations.shape[1]} features, not {WIDTH}")
    return SegmentFeatures(
        packed=packed(subsample(segment.observations)),
        first_step=segment.manifest.first_step,
        steps=segment.manifest.steps,
        milestones=segment.manifest.milestones_end,
        observation=segment.manifest.observation,
    )
