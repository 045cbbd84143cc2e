"""Reads the compared pairs of epochs. Their objects are created once and never change, so each is read once."""

import asyncio
from dataclasses import dataclass
from typing import Final

import structlog

from shared.contracts.ids import RunId
from shared.contracts.judging.pairs import PairComparison, PairSelection, SelectedPair
from shared.errors import ContractError
from shared.process.bounded_cache import BoundedCache
from shared.state.documents import DocumentReader
from shared.store import keys
from shared.store.port import NotFound, ObjectEntry, Store
from shared.telemetry.log_once import LogOnce

CACHED: Final = 20_000  # comparisons of 1 kB; the pairs of an evicted run are read again
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A comparison and the SHA-256 of its object."""

    comparison: PairComparison
    digest: str


class PairReader:
    """Reads the selections and comparisons of one rubric version. A damaged object is logged once and left out."""

    def __init__(self, store: Store, rubric: str = keys.RUBRIC) -> None:
        self._store, self._rubric = store, rubric
        self._documents = DocumentReader(store, PairComparison.from_bytes, "pair unreadable")
        self._known: BoundedCache[ObjectEntry, ComparedPair | None] = BoundedCache(CACHED)
        self._refused: LogOnce[str] = LogOnce(log.error, "pair unreadable")

    async def selection(self, run: RunId, epoch: int) -> PairSelection | None:
        """The epoch's selection, or None before it was made; raise ContractError if it is damaged."""
        try:
            return PairSelection.from_bytes(await self._store.get(keys.pair_selection(run, epoch, self._rubric)))
        except NotFound:
            return None

    async def open_pairs(self, run: RunId, epoch: int) -> list[SelectedPair] | None:
        """The selected pairs of an epoch that have no outcome yet; None if none were selected yet."""
        selection = await self.selection(run, epoch)
        if selection is None:
            return None
        listed = {entry.key for entry in await self._store.list(keys.pairs_prefix(run, epoch, self._rubric))}
        return [pair for pair in selection.pairs if self.key(run, epoch, pair) not in listed]

    async def epoch(self, run: RunId, epoch: int) -> list[ComparedPair]:
        """All readable comparisons of an epoch's selection, in its order."""
        try:
            selection = await self.selection(run, epoch)
        except ContractError as error:
            key = keys.pair_selection(run, epoch, self._rubric)
            self._refused.report(key, error, key=key)
            return []
        if selection is None:
            return []
        entries = {entry.key: entry for entry in await self._store.list(keys.pairs_prefix(run, epoch, self._rubric))}
        wanted = [self.key(run, epoch, pair) for pair in selection.pairs]
        found = await asyncio.gather(*(self._read(entries[key]) for key in wanted if key in entries))
        return [one for one in found if one is not None]

    def key(self, run: RunId, epoch: int, pair: SelectedPair) -> str:
        """The key of a pair's comparison."""
        return keys.pair(run, epoch, pair.first.segment, pair.second.segment, self._rubric)

    async def _read(self, entry: ObjectEntry) -> ComparedPair | None:
        if entry in self._known:
            return self._known.get(entry)
        found = await self._documents.read(entry.key)
        return self._known.put(entry, None if found is None else ComparedPair(*found))
