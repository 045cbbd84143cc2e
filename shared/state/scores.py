"""Score objects out of the store. They are created once and never change, so nobody has to read one twice."""

import asyncio
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

import structlog

from shared.contracts.base import sha256
from shared.contracts.ids import RunId
from shared.contracts.scores import SegmentScores
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import Store

PARALLEL: Final = 16  # reads at once: a store answers them together, more would only queue there
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ScoreObject:
    """A score object and the SHA-256 of its bytes."""

    scores: SegmentScores
    digest: str


class ScoreReader:
    """Reads score objects. One that is damaged is logged and None: its segment must not hold up the others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._slots = asyncio.Semaphore(PARALLEL)

    async def read(self, key: str) -> ScoreObject | None:
        """One object. NotFound if there is none."""
        async with self._slots:
            raw = await self._store.get(key)
        try:
            return ScoreObject(SegmentScores.from_bytes(raw), sha256(raw))
        except ContractError as error:
            log.error("score object refused", key=key, error=str(error))
            return None

    async def of_epoch(self, run: RunId, epoch: int, known: Container[str] = ()) -> dict[str, ScoreObject | None]:
        """The objects of an epoch by key, but those whose key is `known`."""
        found = [entry.key for entry in await self._store.list(keys.scores_prefix(run, epoch))]
        fresh = [key for key in found if key.endswith(".json") and key not in known]
        return dict(zip(fresh, await asyncio.gather(*map(self.read, fresh)), strict=True))
