"""The writer: a thread of the env runner that builds archives and creates them in the store.

Archives are built one after the other; several may be on their way to the store.
"""

import asyncio
import threading
from concurrent.futures import Future
from typing import Final

from services.trainer.recording.queue import WriteJob
from shared.contracts.epoch import SegmentRef
from shared.contracts.ids import Digest
from shared.errors import Transient
from shared.store.create import create_or_read
from shared.store.port import Store

ATTEMPTS: Final = 5
PAUSE_S: Final = 1.0  # before the second attempt; doubles each time


async def write(store: Store, job: WriteJob) -> SegmentRef:
    """Build the archive and create it; one that exists already counts as written. Raises Transient in the end."""
    archive = job.archive()
    for attempt in range(ATTEMPTS):
        try:
            digest = (await create_or_read(store, job.key, archive)).digest
            break
        except Transient:
            if attempt + 1 == ATTEMPTS:
                raise
            await asyncio.sleep(PAUSE_S * 2**attempt)
    return SegmentRef(segment=job.segment, episode=job.episode, key=job.key, digest=Digest(digest))


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


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
