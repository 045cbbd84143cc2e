"""The writer: a thread of the env runner that builds archives and creates them in the store.

Archives are built one after the other; several may be on their way to the store.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

import structlog

from services.trainer.recording.queue import WriteJob
from shared.contracts.epoch import SegmentRef
from shared.contracts.ids import Digest
from shared.errors import Transient
from shared.store import keys
from shared.store.create import create_if_absent, create_or_read
from shared.store.port import Store

log = structlog.get_logger(__name__)

PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0)  # between the attempts to store an archive


async def write(store: Store, job: WriteJob) -> SegmentRef:
    """Build the archive and create it; one that exists already counts as written. Raises Transient in the end."""
    digest = await _create(store, job.key, job.archive())
    with suppress(Transient):  # without the note, the announcer hashes the archive
        await create_if_absent(store, keys.digest_note(job.key, digest), digest.encode())
    return SegmentRef(segment=job.segment, episode=job.episode, key=job.key, digest=digest)


async def _create(store: Store, key: str, archive: bytes) -> Digest:
    for pause_s in PAUSES_S:
        try:
            return Digest((await create_or_read(store, key, archive)).digest)
        except Transient:
            await asyncio.sleep(pause_s)
    return Digest((await create_or_read(store, key, archive)).digest)


class WriterThread:
    """Implements the queue's `Writer` with one daemon thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="segment-writer", daemon=True)
        self._thread.start()

    def submit(self, job: WriteJob) -> "Future[SegmentRef]":
        """Begin to write."""
        return asyncio.run_coroutine_threadsafe(write(self._store, job), self._loop)

    def run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in this thread until `close`. An error ends the coroutine alone, and is logged."""
        asyncio.run_coroutine_threadsafe(work, self._loop).add_done_callback(_log_failure)

    def close(self) -> None:
        """Cancel what is in flight and end the thread."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(_cancel_others())
        self._loop.close()


def _log_failure(ended: "Future[None]") -> None:
    if not ended.cancelled() and (error := ended.exception()) is not None:
        log.error("live view ended", error=repr(error))


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
