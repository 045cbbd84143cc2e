"""Deletes all objects of a run. A mark comes first: it keeps the name taken, and a repeated call continues from it."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

import structlog

from services.coordinator.domain.lifecycle import ACTIVE, RunConflict
from shared.contracts.ids import RunId
from shared.state.deleted_runs import was_deleted
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.create import create_if_absent
from shared.store.port import ObjectEntry, Store

PARALLEL: Final = 32  # deletions at a time: more would only queue in the store
MAX_PASSES: Final = 5  # a process that still worked for the run may write while it is deleted

log = structlog.get_logger(__name__)


class RunDeletion:
    """Deletes runs from one store."""

    def __init__(self, store: Store, runs: RunRecords) -> None:
        self._store, self._runs = store, runs

    async def delete(self, run: RunId) -> tuple[dict[str, int], int]:
        """Delete a run that is not active; return the number of objects by kind, and their bytes.

        Raises RunConflict for an active run, NotFound for one that never existed.
        """
        if not await was_deleted(self._store, run):
            await self._mark(run)
        # The entry in the list of runs and the record go first: no other command finds the run from here on.
        for key in (keys.run_index(run), keys.run_notes(run)):
            await self._store.delete(key)
        found: Counter[str] = Counter()
        size = 0
        for _ in range(MAX_PASSES):
            removed, freed = await self._sweep(run)
            if not removed:
                break
            found, size = found + removed, size + freed
        log.info("run deleted", run=run, objects=found.total(), bytes=size)
        return dict(found), size

    async def _mark(self, run: RunId) -> None:
        await self._require_inactive(run)
        await create_if_absent(self._store, keys.deleted_run(run), run.encode())
        try:
            await self._require_inactive(run)  # it was perhaps resumed before the mark
        except RunConflict:
            await self._store.delete(keys.deleted_run(run))
            raise

    async def _require_inactive(self, run: RunId) -> None:
        record = await self._runs.latest(run)
        if record.state in ACTIVE and not record.external:
            wait = "wait until it has stopped" if record.state == "stopping" else f"first `zelda run stop {run}`"
            raise RunConflict(f"Run {run} is {record.state}: {wait}.")

    async def _sweep(self, run: RunId) -> tuple[Counter[str], int]:
        """Delete every object that a listing shows now."""
        removed: Counter[str] = Counter()
        size = 0
        for kind, prefix in keys.prefixes_of_run(run).items():
            entries = await self._store.list(prefix)
            for first in range(0, len(entries), PARALLEL):
                await asyncio.gather(*(self._store.delete(one.key) for one in entries[first : first + PARALLEL]))
            removed[kind] += len(entries)
            size += total_bytes(entries)
        return +removed, size


def total_bytes(entries: Sequence[ObjectEntry]) -> int:
    """The bytes of these objects."""
    return sum(entry.size for entry in entries)
