"""Run records: an append-only list of revisions per run in the object store; the last one counts.

Creating revision N+1 is the compare-and-swap: the writer has decided on revision N. An unreadable record is logged and
skipped; other runs proceed.
"""

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Final

import structlog

from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.errors import ContractError
from shared.state.deleted_runs import RunDeleted, was_deleted
from shared.state.documents import parse_document
from shared.store import keys
from shared.store.port import NotFound, ObjectEntry, Store
from shared.telemetry import metrics
from shared.telemetry.log_once import LogOnce

SETTLED_S: Final = 120.0  # longer than any write takes, plus the difference of two machines' clocks
RECHECKED: Final = 16  # cached records that each listing reads again
PARALLEL: Final = 16  # concurrent reads: more would only queue in the store
UNREADABLE: Final = metrics.gauge("runs_unreadable_records", "runs that the last listing skipped: unreadable record")
log = structlog.get_logger(__name__)


class RunRecords:
    """Reads and appends revisions. Listing 10,000 runs costs one listing, because unchanged records are cached.

    The index entry is the cache key. It is written before each revision, so a cached record whose entry has not changed
    for SETTLED_S is the newest one. A few cached records are read again in each listing: a coordinator of before
    2026-11-24 does not touch the entry, and clocks may differ.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the Unix epoch, as the store's modification times do."""
        self._store, self._clock = store, clock
        self._settled: dict[ObjectEntry, RunRecord] = {}
        self._running: asyncio.Task[list[RunRecord]] | None = None
        self._following: asyncio.Task[list[RunRecord]] | None = None
        self._unreadable: LogOnce[str] = LogOnce(log.error, "run skipped")

    async def create(self, record: RunRecord) -> str:
        """Write the first revision and return its digest.

        Raises AlreadyExists if the name is taken, RunDeleted if a deleted run had it.
        """
        if await was_deleted(self._store, record.run):
            raise RunDeleted(record.run)
        return await self.append(record)

    async def append(self, record: RunRecord) -> str:
        """Write the next revision and return its digest.

        Raises AlreadyExists if another writer was first, RunDeleted if the run was deleted since its record was read.
        """
        await self._touch(record)
        key = keys.run_revision(record.run, record.revision)
        digest = await self._store.create(key, record.to_bytes())
        # A deletion removes the newest revision, too, so the number of this one may be free again: it would bring the
        # run back without its epochs. The mark is older than the removal: a revision that was not removed finds it.
        if await was_deleted(self._store, record.run):
            await self._store.delete(key)
            await self._store.delete(keys.run_index(record.run))
            raise RunDeleted(record.run)
        return digest

    async def _touch(self, record: RunRecord) -> None:
        # The entry comes first: an entry without a record is ignored, a record without an entry is lost, and a record
        # that is newer than its entry would not be seen.
        await self._store.put(keys.run_index(record.run), f"{record.run} {record.revision}".encode())

    async def latest(self, run: RunId) -> RunRecord:
        """The newest revision; NotFound, with a sentence for users, if there is no such run."""
        revisions = await self._store.list(keys.run_record_prefix(run))
        if not revisions:
            raise NotFound(f"There is no run {run!r}: see GET /runs.")
        return await self._read(run, revisions[-1].key)

    async def revision(self, run: RunId, number: int) -> RunRecord:
        """One revision, or NotFound."""
        return await self._read(run, keys.run_revision(run, number))

    async def all(self) -> list[RunRecord]:
        """The newest revision of every run with a readable record, by name. Concurrent callers share one listing."""
        if self._following is None:
            self._following = asyncio.create_task(self._list_after(self._running))
        return list(await asyncio.shield(self._following))

    @property
    def unreadable(self) -> list[str]:
        """The names, sorted, that the last listing skipped."""
        return sorted(self._unreadable.keys)

    async def _list_after(self, running: asyncio.Task[list[RunRecord]] | None) -> list[RunRecord]:
        # A listing that already runs may have passed over a run that the caller has just created: it is not shared.
        if running is not None and not running.done():
            await asyncio.wait({running})
        self._running, self._following = self._following, None
        return await self._list_all()

    async def _list_all(self) -> list[RunRecord]:
        for entry in list(itertools.islice(self._settled, RECHECKED)):  # the ones that were read longest ago
            del self._settled[entry]
        entries = await self._store.list(keys.run_index_prefix())
        gate = asyncio.Semaphore(PARALLEL)
        # Only what must be read gets a task: ten thousand of them would take most of the listing's time.
        known = {entry: self._settled[entry] for entry in entries if entry in self._settled}
        unknown = [entry for entry in entries if entry not in known]
        read = await asyncio.gather(*(self._newest(entry, gate) for entry in unknown))
        found = known | dict(zip(unknown, read, strict=True))
        names = {_name(entry) for entry in entries}
        self._unreadable.keep_only(names)
        listed = set(entries)
        self._settled = {entry: record for entry, record in self._settled.items() if entry in listed}
        UNREADABLE.set(len(self._unreadable))
        return [record for entry in entries if (record := found[entry]) is not None]

    async def _newest(self, entry: ObjectEntry, gate: asyncio.Semaphore) -> RunRecord | None:
        name = _name(entry)
        try:
            async with gate:
                record = await self.latest(RunId(name))
        except NotFound:
            return None
        except (ContractError, ValueError) as error:  # ValueError: not a run id, so a foreign object
            self._unreadable.report(name, error, run=name)
            return None
        self._unreadable.clear(name)
        if self._clock() - entry.modified > SETTLED_S:
            self._settled[entry] = record
        return record

    async def _read(self, run: RunId, key: str) -> RunRecord:
        raw = await self._store.get(key)
        try:
            record = parse_document(RunRecord, key, raw)
        except ContractError as error:
            raise ContractError(f"Run {run} cannot be read: {error}") from error
        if record.run != run:
            raise ContractError(f"Run {run} cannot be read: {key} is the record of run {record.run}.")
        return record


def _name(entry: ObjectEntry) -> str:
    """The run in an index key."""
    return entry.key.rpartition("/")[2]
