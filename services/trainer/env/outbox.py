"""The bounded queue between the games and the writer process, and the thread that empties it.

When it is full, a random one of the waiting segments makes room with the odds of reservoir sampling: whatever is kept
is a fair sample of the outage, not just its beginning or its end. Drops are counted.
"""

import fcntl
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Final

from services.trainer.env import wire
from services.trainer.env.buffers import BufferPool, Part, SegmentBuffer
from shared.contracts.ids import Digest, EpisodeId, SegmentId
from shared.runtime.settings import StoreSettings

WRITER: Final = "services.trainer.env.writer"
PIPE_SIZE: Final = 1024 * 1024  # bytes; each time the pipe is full, the thread wakes once more and holds up the games
RESTART_S: Final = 5.0  # pause before a writer that died is started again


@dataclass(frozen=True, slots=True)
class Parcel:
    """A finished segment: the manifest's fields, what was gathered, and how the episode came there."""

    facts: dict[str, Any]
    buffer: SegmentBuffer
    actions: bytes
    prefix: bytes
    packed_start: bytes

    def message(self) -> tuple[dict[str, Any], tuple[Part, ...]]:
        """What travels to the writer: the facts, and the buffer's five parts, actions, prefix, start state."""
        facts = {**self.facts, "turns": self.buffer.turns}
        return facts, (*self.buffer.parts(), [self.actions], [self.prefix], [self.packed_start])


@dataclass(frozen=True, slots=True)
class Written:
    """A segment that is in the store."""

    segment: SegmentId
    episode: EpisodeId
    key: str
    digest: Digest


class Outbox:
    """Holds at most `slots` parcels. `post` never waits."""

    def __init__(self, store: StoreSettings, slots: int, seed: int = 0, start: bool = True) -> None:
        """`start` False leaves everything waiting."""
        self._store, self._slots = store, slots
        self.pool = BufferPool()
        self._waiting: list[Parcel] = []
        self._lock = threading.Condition()
        self._seen_full = 0
        self._dice = random.Random(seed)  # noqa: S311 - a fair draw, not a secret
        self._written: list[Written] = []
        self._sent = self._answered = 0
        self._closing = False
        self.dropped = 0
        self._writer: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._empty, name="outbox", daemon=True)
        if start:
            self._thread.start()

    def post(self, parcel: Parcel) -> None:
        """Queue a parcel, or drop one by a fair draw."""
        with self._lock:
            if len(self._waiting) < self._slots:
                self._seen_full = len(self._waiting) + 1
                self._waiting.append(parcel)
                self._lock.notify()
                return
            self._seen_full += 1
            self.dropped += 1
            place = self._dice.randrange(self._seen_full)
            if place < self._slots:
                parcel, self._waiting[place] = self._waiting[place], parcel
        self.pool.give_back(parcel.buffer)

    def waiting(self) -> list[Parcel]:
        """What has not been handed to the writer yet."""
        with self._lock:
            return list(self._waiting)

    @property
    def pending(self) -> int:
        """Segments on their way: waiting here, or with the writer and not answered."""
        with self._lock:
            return len(self._waiting) + self._sent - self._answered

    def kill_writer(self) -> None:
        """End the writer at once, as the system may; for tests of what follows."""
        if self._writer is not None:
            self._writer.kill()

    def written(self) -> list[Written]:
        """What the writer put into the store since the last call."""
        with self._lock:
            done, self._written = self._written, []
            return done

    def close(self, patience_s: float) -> None:
        """Send what waits and wait for the writer, at most `patience_s`; the rest counts as dropped."""
        deadline = time.monotonic() + patience_s
        with self._lock:
            self._closing = True
            self._lock.notify()
        self._thread.join(patience_s)
        writer = self._writer
        if writer is not None:
            with suppress(subprocess.TimeoutExpired):
                writer.wait(max(deadline - time.monotonic(), 0.1))
            writer.kill()
            writer.wait()
            self._reader.join(5.0)
            _close(writer)
        with self._lock:
            self.dropped += len(self._waiting) + self._sent - self._answered
            self._waiting.clear()
            self._sent = self._answered

    def _empty(self) -> None:
        """The thread: start the writer when there is something to write, and feed it."""
        for parcel in self._parcels():
            with self._lock:
                self._sent += 1
            try:
                wire.send(self._running(), *parcel.message())
            except (BrokenPipeError, ConnectionError, OSError, ValueError):
                self._lose()
            self.pool.give_back(parcel.buffer)
        writer = self._writer
        if writer is not None and writer.stdin is not None:
            with suppress(OSError):
                writer.stdin.close()

    def _parcels(self) -> Iterator[Parcel]:
        while True:
            with self._lock:
                while not self._waiting and not self._closing:
                    self._lock.wait()
                if not self._waiting:
                    return
                parcel = self._waiting.pop(0)
            yield parcel

    def _running(self) -> IO[bytes]:
        """The pipe to a running writer."""
        if self._writer is None:
            command = [sys.executable, "-m", WRITER]
            self._writer = subprocess.Popen(  # noqa: S603 - our own module
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ.copy()
            )
            fcntl.fcntl(_stdin(self._writer), fcntl.F_SETPIPE_SZ, PIPE_SIZE)
            self._reader = threading.Thread(target=self._read, args=(self._writer,), name="written", daemon=True)
            self._reader.start()
            wire.send(_stdin(self._writer), {"store": self._store.model_dump(mode="json")}, ())
        return _stdin(self._writer)

    def _lose(self) -> None:
        """The writer died: what it held is lost, and a new one comes after a pause."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.kill()
            writer.wait()
            self._reader.join(5.0)
            _close(writer)
        with self._lock:
            self.dropped += self._sent - self._answered
            self._answered = self._sent
            if not self._closing:
                self._lock.wait(RESTART_S)

    def _read(self, writer: subprocess.Popen[bytes]) -> None:
        """The second thread: one line for each segment, written or given up."""
        for line in writer.stdout or ():
            answer = json.loads(line)
            with self._lock:
                self._answered += 1
                if answer["digest"] is None:
                    self.dropped += 1
                    continue
                self._written.append(
                    Written(
                        SegmentId(answer["segment"]),
                        EpisodeId(answer["episode"]),
                        answer["key"],
                        Digest(answer["digest"]),
                    )
                )


def _close(writer: subprocess.Popen[bytes]) -> None:
    """Give back both pipes of a writer that has ended; what could not be sent is counted already."""
    for pipe in (writer.stdin, writer.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def _stdin(writer: subprocess.Popen[bytes]) -> IO[bytes]:
    if writer.stdin is None:
        raise BrokenPipeError("the writer has no input")
    return writer.stdin
