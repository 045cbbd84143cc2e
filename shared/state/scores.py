"""Reads score objects. They are created once and never change, so each is read once."""

import asyncio
from collections.abc import Container, Sequence
from dataclasses import dataclass

from shared.contracts.ids import RunId
from shared.contracts.scores import SegmentScores
from shared.state.documents import DocumentReader
from shared.store import keys
from shared.store.port import ObjectEntry, Store


@dataclass(frozen=True, slots=True)
class ScoreObject:
    """A score object and the SHA-256 of its bytes."""

    scores: SegmentScores
    digest: str


class ScoreReader:
    """Reads score objects. A damaged one is logged once and read as None; other segments proceed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._documents = DocumentReader(store, SegmentScores.from_bytes, "score object unreadable")

    async def read(self, key: str) -> ScoreObject | None:
        """One object, or None if it is damaged; NotFound if it is missing."""
        found = await self._documents.read(key)
        return None if found is None else ScoreObject(*found)

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
