"""What is kept of a segment while a route is away: since when, and what the other judges said."""

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
    """Since when the segment waits, and the results there are."""

    since: datetime
    results: list[JudgeResult] = Field(default_factory=list, max_length=8)


class PartialResultStore:
    """The partial results under one rubric version, in the store."""

    def __init__(self, store: Store, rubric: str) -> None:
        self._store, self._rubric = store, rubric

    async def load(self, segment: SegmentReady) -> PartialResult | None:
        """What is kept of this segment."""
        key = self._key(segment)
        try:
            return PartialResult.from_bytes(await self._store.get(key))
        except NotFound:
            return None
        except ContractError as error:  # the judges are asked again: the segment itself is not to blame
            log.error("partial result not readable", key=key, error=str(error))
            return None

    async def save(self, segment: SegmentReady, partial: PartialResult) -> None:
        """Keep this for the next time."""
        await self._store.put(self._key(segment), partial.to_bytes())

    async def delete(self, segment: SegmentReady) -> None:
        """Forget what was kept: the segment has a score."""
        await self._store.delete(self._key(segment))

    def _key(self, segment: SegmentReady) -> str:
        return keys.partial_scores(segment.run, segment.epoch, segment.segment, self._rubric)
