"""Reads score objects. They are created once and never change, so each is read once."""

import asyncio
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from shared.contracts.base import sha256
from shared.contracts.ids import RunId
from shared.contracts.scores import SegmentScores
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import ObjectEntry, Store
from shared.telemetry.log_once import LogOnce

PARALLEL: Final = 16  # concurrent reads: more would only queue in the store
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ScoreObject:
    """A score object and the SHA-256 of its bytes."""

    scores: SegmentScores
    digest: str


class ScoreReader:
    """Reads score objects. A damaged one is logged once and read as None; other segments proceed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._slots = asyncio.Semaphore(PARALLEL)
        self._refused: LogOnce[str] = LogOnce(log.error, "score object unreadable")

    async def read(self, key: str) -> ScoreObject | None:
        """One object, or None if it is damaged; NotFound if it is missing."""
        async with self._slots:
            raw = await self._store.get(key)
        try:
            return ScoreObject(SegmentScores.from_bytes(raw), sha256(raw))
        except ContractError as error:
            self._refused.report(key, error, key=key)
            return None

    async def list_epoch(self, run: RunId, epoch: int) -> list[ObjectEntry]:
        """The entries of an epoch's objects. A recreated object has another entry; foreign objects are ignored."""
        entries = await self._store.list(keys.scores_prefix(run, epoch))
        return [entry for entry in entries if keys.is_score(entry.key, run, epoch)]

    async def read_all(self, entries: Sequence[ObjectEntry]) -> dict[ObjectEntry, ScoreObject | None]:
        """Read the objects of these entries."""
        return dict(zip(entries, await asyncio.gather(*(self.read(entry.key) for entry in entries)), strict=True))

    async def read_epoch(self, run: RunId, epoch: int, known: Container[str] = ()) -> dict[str, ScoreObject | None]:
        """Read the objects of an epoch whose key is not in `known`; by key."""
        fresh = [entry for entry in await self.list_epoch(run, epoch) if entry.key not in known]
        return {entry.key: found for entry, found in (await self.read_all(fresh)).items()}
