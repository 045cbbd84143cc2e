"""The bounded queue between the games and the writer.

Posting never waits. When the queue is full, a random waiting segment makes room, with the odds of reservoir sampling:
what remains is a fair sample of the outage, not just its beginning or its end. Drops are counted.
"""

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from shared.contracts.epoch import SegmentRef
from shared.contracts.ids import EpisodeId, SegmentId

IN_FLIGHT: Final = 8  # segments with the writer; a remote store answers slowly but takes many at a time

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A segment to write; `archive` builds the bytes."""

    segment: SegmentId
    episode: EpisodeId
    key: str
    archive: Callable[[], bytes]


class Writer(Protocol):
    """Writes segments in the background."""

    def submit(self, job: WriteJob) -> "Future[SegmentRef]":
        """Begin to write; the future fails if the segment cannot be written."""
        ...

    def close(self) -> None:
        """Cancel what is in flight and end."""
        ...


class WriteQueue:
    """Holds at most `slots` waiting segments, and `in_flight` more that the writer has. Thread-safe."""

    def __init__(self, writer: Writer, slots: int, in_flight: int = IN_FLIGHT, seed: int = 0) -> None:
        self._writer, self._slots, self._in_flight_limit = writer, slots, in_flight
        self._waiting: list[WriteJob] = []
        self._in_flight: set[Future[SegmentRef]] = set()
        self._written: list[SegmentRef] = []
        self._changed = threading.Condition()
        self._posted_while_full = 0
        self._rng = random.Random(seed)  # noqa: S311 - a fair draw, not a secret
        self._closed = False
        self.dropped = 0

    def post(self, job: WriteJob) -> None:
        """Queue a segment, or drop one by a fair draw."""
        with self._changed:
            if self._closed:
                self.dropped += 1
                return
            self._waiting.append(job)
            self._submit()
            if len(self._waiting) <= self._slots:
                self._posted_while_full = len(self._waiting)
                return
            self._posted_while_full += 1
            self.dropped += 1
            newest = self._waiting.pop()
            place = self._rng.randrange(self._posted_while_full)
            if place < self._slots:
                self._waiting[place] = newest

    @property
    def pending(self) -> int:
        """Number of segments that are neither written nor dropped."""
        with self._changed:
            return len(self._waiting) + len(self._in_flight)

    def written(self) -> list[SegmentRef]:
        """Segments written since the last call."""
        with self._changed:
            done, self._written = self._written, []
            return done

    def close(self, patience_s: float) -> None:
        """Wait at most `patience_s` for what is pending, drop the rest, and end the writer."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._in_flight, patience_s)
            self.dropped += len(self._waiting) + len(self._in_flight)
            self._waiting.clear()
            self._in_flight.clear()
            self._closed = True
        self._writer.close()

    def _submit(self) -> None:
        while self._waiting and len(self._in_flight) < self._in_flight_limit:
            future = self._writer.submit(self._waiting.pop(0))
            self._in_flight.add(future)
            future.add_done_callback(self._settle)

    def _settle(self, future: "Future[SegmentRef]") -> None:
        with self._changed:
            if future not in self._in_flight:  # dropped by `close`
                return
            self._in_flight.remove(future)
            error = future.exception()
            if error is None:
                self._written.append(future.result())
            else:
                self.dropped += 1
            self._submit()
            self._changed.notify_all()
        if error is not None:  # outside the lock: a log that blocks must not block the games
            log.warning("segment dropped", error=f"{type(error).__name__}: {error}")
