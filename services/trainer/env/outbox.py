"""The bounded queue between the games and the writer process.

Nothing here waits, and no thread runs beside the games: whoever posts or asks also sends what can be sent and reads
what was answered. When the queue is full, a random one of the waiting segments makes room with the odds of reservoir
sampling: whatever is kept is a fair sample of the outage, not just its beginning or its end. Drops are counted.

The writer runs when a core is idle, so that no game waits for it. Where no core ever is, it is replaced by one that
takes its share (`_hurry`); the store takes what both create for one.
"""

import random
import threading
import time
from dataclasses import dataclass
from typing import Any, Final, Self

import structlog

from services.trainer.env.buffers import BufferPool, SegmentBuffer
from services.trainer.env.clerk import MOST, Clerk
from shared.config.settings import StoreSettings
from shared.contracts.ids import Digest, EpisodeId, SegmentId

RESTART_S: Final = 5.0  # pause before a writer that died is started again
IDLE_S: Final = 3.0  # an idle writer that has work for so long on end finds no idle time; it starts in one
POLL_S: Final = 0.005  # of whoever waits for the end

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Parcel:
    """A segment for the writer: the manifest's fields, and where the rest is."""

    facts: dict[str, Any]
    buffer: SegmentBuffer


@dataclass(frozen=True, slots=True)
class Written:
    """A segment that is in the store."""

    segment: SegmentId
    episode: EpisodeId
    key: str
    digest: Digest

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        """From the writer's answer."""
        segment, episode = SegmentId(answer["segment"]), EpisodeId(answer["episode"])
        return cls(segment, episode, answer["key"], Digest(answer["digest"]))


class Outbox:
    """Holds at most `slots` parcels. Safe for several threads."""

    def __init__(self, store: StoreSettings, pool: BufferPool, slots: int, seed: int = 0, start: bool = True) -> None:
        """Parcels are in buffers of `pool` and go back there. `start` False leaves everything waiting."""
        self._store, self._pool, self._slots, self._start = store, pool, slots, start
        self._waiting: list[Parcel] = []
        self._sent: dict[int, Parcel] = {}  # by place: the writer reads them, and has not answered
        self._sent_since = 0.0  # never empty since then
        self._lock = threading.Lock()
        self._seen_full = 0
        self._dice = random.Random(seed)  # noqa: S311 - a fair draw, not a secret
        self._written: list[dict[str, Any]] = []  # answers
        self._clerk: Clerk | None = None
        self._idle = True
        self._former: Clerk | None = None  # the idle one that was replaced
        self._rest_until = 0.0
        self.dropped = 0

    def post(self, parcel: Parcel) -> None:
        """Queue a parcel, or drop one by a fair draw."""
        with self._lock:
            self._waiting.append(parcel)
            self._move()
            if len(self._waiting) > self._slots:
                self._hurry()
                self._send()
            if len(self._waiting) <= self._slots:
                self._seen_full = len(self._waiting)
                return
            parcel = self._waiting.pop()
            self._seen_full += 1
            self.dropped += 1
            place = self._dice.randrange(self._seen_full)
            if place < self._slots:
                parcel, self._waiting[place] = self._waiting[place], parcel
        self._pool.give_back(parcel.buffer)

    def waiting(self) -> list[Parcel]:
        """What has not been handed to the writer yet."""
        with self._lock:
            return list(self._waiting)

    @property
    def pending(self) -> int:
        """Segments on their way: waiting here, or with the writer and not answered."""
        with self._lock:
            self._move()
            return len(self._waiting) + len(self._sent)

    def written(self) -> list[Written]:
        """What the writer put into the store since the last call."""
        with self._lock:
            self._move()
            done, self._written = self._written, []
        return [Written.of(answer) for answer in done]

    def close(self, patience_s: float) -> None:
        """Send what waits and wait for the writer, at most `patience_s`; the rest counts as dropped."""
        deadline = time.monotonic() + patience_s
        while self.pending and time.monotonic() < deadline:
            time.sleep(POLL_S)
        with self._lock:
            self.dropped += len(self._waiting)
            for parcel in self._waiting:
                self._pool.give_back(parcel.buffer)
            self._waiting.clear()
            self._dismiss()
            if self._former is not None:
                self._former.close()

    def _move(self) -> None:
        """Take in what the writer answered, and send what waits. Ends a writer that died, or finds no idle time."""
        clerk = self._clerk
        if clerk is not None:
            for answer in clerk.answers():
                self._note(answer)
            if not clerk.alive:
                self._dismiss()
                self._rest_until = time.monotonic() + RESTART_S
        if self._sent and time.monotonic() - self._sent_since > IDLE_S:
            self._hurry()
        self._send()

    def _send(self) -> None:
        """Hand over what waits, as far as the writer may hold it; start one if there is none."""
        while self._waiting and self._start and time.monotonic() >= self._rest_until:
            clerk = self._clerk or self._hire()
            if clerk is None or not clerk.alive or len(self._sent) == MOST:
                return
            parcel = self._waiting.pop(0)
            if not self._sent:
                self._sent_since = time.monotonic()
            self._sent[parcel.buffer.place] = parcel
            clerk.send(parcel.facts, parcel.buffer)

    def _hire(self) -> Clerk | None:
        """Start a writer; where the system has no process or memory left, wait before the next try."""
        try:
            self._clerk = Clerk(self._store, self._pool.tray, self._idle)
        except OSError as error:
            log.warning("the segment writer does not start", error=str(error), again_in_s=RESTART_S)
            self._rest_until = time.monotonic() + RESTART_S
        return self._clerk

    def _hurry(self) -> None:
        """From now on the writer takes its share of the processor. What the idle one holds, this one gets."""
        if not self._idle:
            return
        self._idle = False
        if self._clerk is not None:
            self._clerk.kill()
            self._former, self._clerk = self._clerk, None
        self._waiting[:0] = self._sent.values()
        self._sent.clear()

    def _dismiss(self) -> None:
        """End the writer; what it held is lost: it may be what ended it."""
        if self._clerk is not None:
            self._clerk.close()
            self._clerk = None
        self.dropped += len(self._sent)
        for parcel in self._sent.values():
            self._pool.give_back(parcel.buffer)
        self._sent.clear()

    def _note(self, answer: dict[str, Any]) -> None:
        self._pool.give_back(self._sent.pop(answer["place"]).buffer)
        if answer["digest"] is None:
            self.dropped += 1
        else:
            self._written.append(answer)
