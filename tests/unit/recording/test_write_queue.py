"""The write queue never blocks its callers, drops fairly and counts what it drops."""

import threading
import time
from collections import Counter
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from services.trainer.recording.queue import WriteJob, WriteQueue
from services.trainer.recording.writer import WriterThread
from shared.config.settings import StoreSettings
from shared.contracts.base import sha256
from shared.contracts.epoch import SegmentRef
from shared.contracts.ids import Digest
from shared.store.memory import MemoryStore
from shared.store.open import open_store
from tests.unit.recording.recording_settings import write_job


class StalledWriter:
    """Never finishes a segment."""

    def __init__(self) -> None:
        self.jobs: list[WriteJob] = []

    def submit(self, job: WriteJob) -> "Future[SegmentRef]":
        self.jobs.append(job)
        return Future()

    def close(self) -> None:
        """Nothing to end."""


class WriterByHand:
    """A writer whose segments are finished by the test."""

    def __init__(self) -> None:
        self.jobs: list[tuple[WriteJob, Future[SegmentRef]]] = []

    def submit(self, job: WriteJob) -> "Future[SegmentRef]":
        future: Future[SegmentRef] = Future()
        self.jobs.append((job, future))
        return future

    def finish(self) -> None:
        """Store the oldest segment that is in flight."""
        job, future = self.jobs.pop(0)
        future.set_result(
            SegmentRef(segment=job.segment, episode=job.episode, key=job.key, digest=Digest(sha256(job.archive())))
        )

    def close(self) -> None:
        """Nothing to end."""


def test_an_outage_leaves_a_fair_sample() -> None:
    """Each of 40 segments of an outage survives about equally often in a queue of 8."""
    kept: Counter[int] = Counter()
    for seed in range(300):
        queue = WriteQueue(StalledWriter(), slots=8, in_flight=0, seed=seed)
        for number in range(40):
            queue.post(write_job(number))
        assert queue.dropped == 32
        kept.update(int(job.archive()) for job in queue._waiting)
        queue.close(patience_s=0.0)

    early, late = (sum(kept[n] for n in part) / 20 for part in (range(20), range(20, 40)))
    assert sum(kept.values()) == 300 * 8
    assert early == pytest.approx(late, rel=0.15)
    assert min(kept.values()) > 30


def test_the_writer_holds_a_bounded_number_of_segments() -> None:
    writer = StalledWriter()
    queue = WriteQueue(writer, slots=2, in_flight=3)
    for number in range(6):
        queue.post(write_job(number))

    assert (len(writer.jobs), len(queue._waiting), queue.dropped) == (3, 2, 1)
    queue.close(patience_s=0.0)
    assert (queue.pending, queue.dropped) == (0, 6)


def test_a_written_segment_makes_room_for_one_that_waits() -> None:
    """Also after the last segment was posted: otherwise those that wait would be dropped at the end."""
    writer = WriterByHand()
    queue = WriteQueue(writer, slots=4, in_flight=1)
    for number in range(3):
        queue.post(write_job(number))
    for left in (2, 1, 0):
        writer.finish()
        assert queue.pending == left
    assert [ref.segment for ref in queue.written()] == [write_job(number).segment for number in range(3)]
    assert queue.written() == [], "each is reported once"
    assert queue.dropped == 0


def test_closing_waits_no_longer_than_for_the_last_segment() -> None:
    writer = WriterByHand()
    queue = WriteQueue(writer, slots=4)
    queue.post(write_job(0))
    began = time.monotonic()
    finisher = threading.Timer(0.05, writer.finish)
    finisher.start()
    queue.close(patience_s=60.0)
    finisher.join()

    assert time.monotonic() - began < 30
    assert (len(queue.written()), queue.dropped) == (1, 0)


def test_a_segment_that_is_written_too_late_stays_dropped() -> None:
    """It was counted as dropped at the end of the epoch, whose record lists the written ones."""
    writer = WriterByHand()
    queue = WriteQueue(writer, slots=4)
    queue.post(write_job(0))
    queue.close(patience_s=0.0)
    writer.finish()

    assert (queue.written(), queue.dropped) == ([], 1)


def test_posting_to_an_absent_store_never_waits(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("none")
    away = StoreSettings(url="s3://test", endpoint="http://127.0.0.1:9", access_key_file=secret, secret_key_file=secret)
    queue = WriteQueue(WriterThread(open_store(away)), slots=4)
    began = time.perf_counter()
    for number in range(200):
        queue.post(write_job(number))
    waited = time.perf_counter() - began
    queue.close(patience_s=0.2)

    assert waited < 0.5
    assert queue.dropped == 200
    assert queue.written() == []


def test_a_segment_that_fails_to_build_is_counted_and_the_next_is_written() -> None:
    def fail() -> bytes:
        raise MemoryError("no memory for this archive")

    store = MemoryStore()
    queue = WriteQueue(WriterThread(store), slots=4)
    queue.post(replace(write_job(0), archive=fail))
    queue.post(write_job(1))
    queue.close(patience_s=10.0)

    assert queue.dropped == 1
    assert [ref.segment for ref in queue.written()] == [write_job(1).segment]


def test_closing_a_queue_twice_is_harmless() -> None:
    queue = WriteQueue(WriterThread(MemoryStore()), slots=4)
    queue.post(write_job(0))
    queue.close(patience_s=10.0)
    queue.close(patience_s=10.0)

    assert (len(queue.written()), queue.dropped) == (1, 0)


def test_a_segment_after_the_end_is_counted_as_dropped() -> None:
    queue = WriteQueue(WriterThread(MemoryStore()), slots=4)
    queue.close(patience_s=0.0)
    queue.post(write_job(0))

    assert (queue.pending, queue.dropped) == (0, 1)
