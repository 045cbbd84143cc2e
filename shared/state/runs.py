"""The book of runs: a run's record is an append-only list of revisions in the object store, the last one counts.

Creating revision N+1 is the compare-and-swap. Nothing here decides; whoever writes has decided on the revision it read.
"""

import asyncio
from typing import Final

from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import NotFound, Store

PARALLEL: Final = 16  # reads at once: more would only queue in the store


class Runs:
    """Reads and appends revisions. Only records of finished runs are remembered, because nothing follows them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._finished: dict[RunId, RunRecord] = {}

    async def create(self, record: RunRecord) -> str:
        """Write the first revision and return its digest, or raise AlreadyExists: the name is taken."""
        # The entry of the index comes first: an entry without a record is passed over, a record without one is lost.
        await self._store.put(keys.run_index(record.run), record.run.encode())
        return await self._store.create(keys.run_revision(record.run, 0), record.to_bytes())

    async def append(self, record: RunRecord) -> str:
        """Write the next revision and return its digest, or raise AlreadyExists: somebody else wrote it first."""
        return await self._store.create(keys.run_revision(record.run, record.revision), record.to_bytes())

    async def latest(self, run: RunId) -> RunRecord:
        """The newest revision, or NotFound with a sentence for people."""
        revisions = await self._store.list(keys.run_record_prefix(run))
        if not revisions:
            raise NotFound(f"There is no run {run!r}: see GET /runs.")
        return await self._read(run, revisions[-1].key)

    async def revision(self, run: RunId, number: int) -> RunRecord:
        """One revision, or NotFound."""
        return await self._read(run, keys.run_revision(run, number))

    async def all(self) -> list[RunRecord]:
        """The newest revision of every run, by name."""
        entries = await self._store.list(keys.run_index_prefix())
        gate = asyncio.Semaphore(PARALLEL)
        found = await asyncio.gather(*(self._newest(RunId(entry.key.rpartition("/")[2]), gate) for entry in entries))
        return [record for record in found if record is not None]

    async def _newest(self, run: RunId, gate: asyncio.Semaphore) -> RunRecord | None:
        if run in self._finished:
            return self._finished[run]
        async with gate:
            try:
                record = await self.latest(run)
            except NotFound:
                return None
        if record.state == "finished":
            self._finished[run] = record
        return record

    async def _read(self, run: RunId, key: str) -> RunRecord:
        record = RunRecord.from_bytes(await self._store.get(key))
        if record.run != run:
            raise ContractError(f"{key}: the record is of run {record.run}")
        return record
