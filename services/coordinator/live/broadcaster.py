"""Broadcasts the updates of runs to live readers: about one poll a second per watched run, for any number of readers.

A slow reader gets the newest update of each document and the last scores. So its backlog is bounded, and it delays no
other reader. A new reader waits for the next poll: an older state of a resumed run would be wrong.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from shared.contracts.ids import RunId
from shared.errors import ZeldaError
from shared.process.event_wait import wait_for_event
from shared.store.port import NotFound
from shared.telemetry.log_once import LogOnce

MAX_BACKLOG: Final = 200  # unread scores of one reader
RECENT_SCORES: Final = 30  # scores that a new reader gets first
POLL_SHARE: Final = 1 / 40  # of the time: a poll of a run with hundreds of epochs takes a tenth of a second
MAX_PAUSE_S: Final = 5.0  # between two polls, however slow the store is
MIN_PAUSE_S: Final = 0.2  # before the poll of a new reader, so that many who come together share a few polls
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RunUpdate:
    """One update of a run: its kind (`run`, `progress`, `epoch`, `score`) and its JSON document."""

    kind: str
    data: str
    subject: str = ""  # the epoch or segment

    @property
    def key(self) -> tuple[str, str]:
        """What the update is about: a newer update replaces an older one with the same key."""
        return self.kind, self.subject


Poll = Callable[[], Awaitable[list[RunUpdate]]]
"""Returns the updates since its last call; raises NotFound for a run that was deleted."""


@dataclass(slots=True, eq=False)
class _Reader:
    """The unread updates of one reader. Documents are kept by key, so only scores need a bound."""

    documents: dict[tuple[str, str], RunUpdate] = field(default_factory=dict)
    scores: deque[RunUpdate] = field(default_factory=lambda: deque(maxlen=MAX_BACKLOG))
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    joined: bool = False  # it got everything known at its first poll
    ended: bool = False  # its run was deleted

    def put(self, update: RunUpdate) -> None:
        """Add one update."""
        if update.kind == "score":
            self.scores.append(update)
        else:
            self.documents[update.key] = update
        self.ready.set()

    def end(self) -> None:
        """No update follows the unread ones."""
        self.ended = True
        self.ready.set()

    async def next(self) -> RunUpdate | None:
        """The oldest unread update, or None at the end: documents before scores, which the page needs to show them."""
        while not self.documents and not self.scores:
            if self.ended:
                return None
            self.ready.clear()
            await self.ready.wait()
        return self.documents.pop(next(iter(self.documents))) if self.documents else self.scores.popleft()


@dataclass(slots=True)
class _Channel:
    task: asyncio.Task[None]
    documents: dict[tuple[str, str], RunUpdate] = field(default_factory=dict)
    scores: deque[RunUpdate] = field(default_factory=lambda: deque(maxlen=RECENT_SCORES))
    readers: set[_Reader] = field(default_factory=set)
    joining: asyncio.Event = field(default_factory=asyncio.Event)

    def broadcast(self, updates: Sequence[RunUpdate]) -> None:
        """Store the updates of a poll and pass them to the joined readers."""
        for update in updates:
            if update.kind == "score":
                self.scores.append(update)
            else:
                self.documents[update.key] = update
            for reader in self.readers:
                if reader.joined:
                    reader.put(update)

    def join(self, readers: Sequence[_Reader]) -> None:
        """Pass everything known to new readers."""
        for reader in readers:
            reader.joined = True
            for update in (*self.documents.values(), *self.scores):
                reader.put(update)


class EventBroadcaster:
    """One channel per watched run. `poller` makes the poll of a run; each new channel gets a new one."""

    def __init__(self, poller: Callable[[RunId], Poll], interval_s: float = 1.0) -> None:
        self._poller, self._interval_s = poller, interval_s
        self._channels: dict[RunId, _Channel] = {}
        self._problems: LogOnce[RunId] = LogOnce(log.warning, "live poll failed")

    async def follow(self, run: RunId) -> AsyncGenerator[RunUpdate, None]:
        """The current state of the run, then its updates, until the reader closes the generator or the run is gone."""
        channel = self._channels.get(run)
        if channel is None:
            channel = _Channel(asyncio.create_task(self._watch(run)))
            self._channels[run] = channel
        reader = _Reader()
        channel.readers.add(reader)
        channel.joining.set()
        try:
            while (update := await reader.next()) is not None:
                yield update
        finally:
            channel.readers.discard(reader)
            if not channel.readers:
                self._close(run, channel)

    def _close(self, run: RunId, channel: _Channel) -> None:
        if self._channels.get(run) is channel:  # else it has ended, and later readers have another one
            del self._channels[run]
            channel.task.cancel()
            self._problems.clear(run)

    async def _watch(self, run: RunId) -> None:
        poll, channel = self._poller(run), self._channels[run]
        while True:
            # Readers that come during the poll wait for the next one.
            channel.joining.clear()
            new_readers = [reader for reader in channel.readers if not reader.joined]
            began = time.monotonic()
            try:
                channel.broadcast(await poll())
                channel.join(new_readers)
                self._problems.clear(run)
            except NotFound:  # a reader that comes again learns why
                del self._channels[run]
                for reader in channel.readers:
                    reader.end()
                return
            except Exception as error:  # any error: for a reader, a dead poll looks like a run without updates
                self._problems.report(run, error, run=run, exc_info=not isinstance(error, ZeldaError))
            took = time.monotonic() - began
            await asyncio.sleep(min(self._interval_s, MIN_PAUSE_S))
            # A new reader does not wait for the end of a long pause.
            await wait_for_event(channel.joining, max(self._interval_s, min(took / POLL_SHARE, MAX_PAUSE_S)))
