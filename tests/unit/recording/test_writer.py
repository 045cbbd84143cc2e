"""The writer retries a failing store; an archive that exists already counts as written."""

import asyncio
import threading
from dataclasses import replace

import pytest

from services.trainer.recording import writer
from services.trainer.recording.writer import WriterThread, write
from shared.contracts.base import sha256
from shared.errors import Transient
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.recording.recording_settings import RUN, write_job

JOB = write_job(0)
ARCHIVE = JOB.archive()


class FlakyStore(MemoryStore):
    """Fails the first `times` calls of each kind; a failed `create` has written nevertheless: its answer was lost."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = {"create": times, "get": times}

    def _fail(self, call: str) -> None:
        if self.left[call]:
            self.left[call] -= 1
            raise Transient(f"the store lost a {call}")

    async def create(self, key: str, data: bytes) -> str:
        try:
            return await super().create(key, data)
        finally:
            self._fail("create")

    async def get(self, key: str, digest: str | None = None) -> bytes:
        self._fail("get")
        return await super().get(key, digest)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PAUSES_S", (0.0,) * 4)


async def test_the_writer_survives_lost_answers_of_the_store() -> None:
    store = FlakyStore(times=2)
    assert (await write(store, JOB)).digest == sha256(ARCHIVE)
    assert await MemoryStore.get(store, JOB.key) == ARCHIVE


async def test_the_writer_gives_up_on_a_store_that_stays_away() -> None:
    with pytest.raises(Transient):
        await write(FlakyStore(times=100), JOB)


async def test_a_committed_segment_is_not_written_again() -> None:
    store = MemoryStore()
    await store.create(JOB.key, b"committed earlier")

    assert (await write(store, JOB)).digest == sha256(b"committed earlier")
    assert await store.get(JOB.key) == b"committed earlier"


async def test_the_writer_notes_the_digest_beside_the_archive() -> None:
    store = MemoryStore()
    written = await write(store, JOB)

    listed = [entry.key for entry in await store.list(keys.segments_prefix(RUN, 3))]
    assert keys.noted_digests(listed) == {JOB.key: written.digest}


async def test_a_lost_digest_note_does_not_lose_the_segment() -> None:
    class NoteLosingStore(MemoryStore):
        async def create(self, key: str, data: bytes) -> str:
            if keys.is_digest_note(key):
                raise Transient("the store lost the note")
            return await super().create(key, data)

    assert (await write(NoteLosingStore(), JOB)).digest == sha256(ARCHIVE)


class SlowStore(MemoryStore):
    """Answers after half a second, and notes what happens in `log`."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    async def create(self, key: str, data: bytes) -> str:
        await asyncio.sleep(0.5)
        self.log.append("stored")
        return await super().create(key, data)

    def build(self) -> bytes:
        """Build an archive."""
        self.log.append("built")
        return b"archive"


def test_several_archives_are_on_their_way_to_a_slow_store() -> None:
    store = SlowStore()
    thread = WriterThread(store)
    futures = [thread.submit(replace(write_job(number), archive=store.build)) for number in range(3)]
    for future in futures:
        future.result(timeout=10)
    thread.close()

    assert store.log[:3] == ["built", "built", "built"]


def test_closing_cancels_what_is_in_flight_and_ends_the_thread() -> None:
    before = threading.active_count()
    thread = WriterThread(SlowStore())
    future = thread.submit(JOB)
    thread.close()

    assert future.cancelled()
    assert threading.active_count() == before
