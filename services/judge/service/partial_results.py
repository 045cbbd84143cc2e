"""The results that exist while a route is unavailable: since when the segment waits, and the other judges' results."""

from datetime import datetime

import structlog
from pydantic import Field

from shared.contracts.base import Contract
from shared.contracts.events import SegmentReady
from shared.contracts.scores import JudgeResult
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import NotFound, Store

log = structlog.get_logger(__name__)


class PartialResult(Contract):
    """Since when a segment waits for a judge, and the results of the other judges."""

    since: datetime
    results: list[JudgeResult] = Field(default_factory=list, max_length=8)


class PartialResultStore:
    """The partial results of one rubric version."""

    def __init__(self, store: Store, rubric: str) -> None:
        self._store, self._rubric = store, rubric

    async def load(self, segment: SegmentReady) -> PartialResult | None:
        """Return the segment's partial result, or None. An unreadable one counts as missing: judges are asked again."""
        key = self._key(segment)
        try:
            return PartialResult.from_bytes(await self._store.get(key))
        except NotFound:
            return None
        except ContractError as error:
            log.error("partial result unreadable", key=key, error=str(error))
            return None

    async def save(self, segment: SegmentReady, partial: PartialResult) -> None:
        """Store the partial result for the next delivery."""
        await self._store.put(self._key(segment), partial.to_bytes())

    async def delete(self, segment: SegmentReady) -> None:
        """Delete the partial result of a segment that has a score."""
        await self._store.delete(self._key(segment))

    def _key(self, segment: SegmentReady) -> str:
        return keys.partial_scores(segment.run, segment.epoch, segment.segment, self._rubric)
