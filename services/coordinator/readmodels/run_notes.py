"""Notes and tags that people give to runs. They stand beside the record of a run and never change it."""

import asyncio
import time
from typing import Final

import structlog

from shared.contracts.ids import RunId, Tag
from shared.contracts.progress import RunNotes
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import NotFound, ObjectEntry, Store
from shared.telemetry.log_once import LogOnce

PARALLEL: Final = 16  # concurrent reads: one by one, the notes of 10,000 runs take minutes after a start
SETTLED_S: Final = 120.0  # younger objects may change without a change of size or time
log = structlog.get_logger(__name__)


class RunNotesReader:
    """Reads notes. The tags of all runs cost one listing, because unchanged notes are cached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._settled: dict[ObjectEntry, RunNotes] = {}
        self._unreadable: LogOnce[str] = LogOnce(log.error, "notes skipped")

    async def read(self, run: RunId) -> RunNotes:
        """The notes of a run; empty ones if it has none."""
        try:
            return RunNotes.from_bytes(await self._store.get(keys.run_notes(run)))
        except NotFound:
            return RunNotes(run=run)

    async def tags(self) -> dict[RunId, list[Tag]]:
        """The tags of every run that has notes. Unreadable notes are logged and left out."""
        entries, settled = await self._store.list(keys.run_notes_prefix()), self._settled
        gate = asyncio.Semaphore(PARALLEL)
        unknown = [entry for entry in entries if entry not in settled]
        read = await asyncio.gather(*(self._read(entry, gate) for entry in unknown))
        known = settled | dict(zip(unknown, read, strict=True))
        found = {entry: notes for entry in entries if (notes := known[entry]) is not None}
        self._settled = {entry: one for entry, one in found.items() if time.time() - entry.modified > SETTLED_S}
        self._unreadable.keep_only({entry.key for entry in entries})
        return {notes.run: notes.tags for notes in found.values()}

    async def _read(self, entry: ObjectEntry, gate: asyncio.Semaphore) -> RunNotes | None:
        try:
            async with gate:
                notes = RunNotes.from_bytes(await self._store.get(entry.key))
        except NotFound:  # deleted since the listing
            return None
        except ContractError as error:
            self._unreadable.report(entry.key, error, key=entry.key)
            return None
        self._unreadable.clear(entry.key)
        return notes
