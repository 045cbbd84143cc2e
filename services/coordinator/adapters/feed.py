"""Live news of runs for people who watch: one look at the store a second for each watched run, however many watch.

A slow reader gets of each thing the newest news and of scores the last ones; it never slows anybody down. So the news
that wait for it are bounded by what there is to know, however long a run gets. Who comes is told nothing that was found
before: a run that was resumed must not be said to have stopped.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from shared.contracts.ids import RunId
from shared.errors import ZeldaError

LAG: Final = 200  # scores that one reader may lag behind
RECENT: Final = 30  # scores that a reader sees at once when it comes
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class News:
    """One piece of news: its kind (`run`, `progress`, `epoch`, `score`) and its JSON."""

    kind: str
    data: str
    about: str = ""  # which epoch or segment; newer news about the same thing replaces older


@dataclass(slots=True, eq=False)
class _Reader:
    """What one reader has not got yet. `things` are kept by what they are about, so only scores can be too many."""

    things: dict[tuple[str, str], News] = field(default_factory=dict)
    scores: deque[News] = field(default_factory=lambda: deque(maxlen=LAG))
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    greeted: bool = False  # it was told what is known

    def tell(self, news: News) -> None:
        """Keep one more piece of news for this reader."""
        if news.kind == "score":
            self.scores.append(news)
        else:
            self.things[(news.kind, news.about)] = news
        self.woken.set()

    async def next(self) -> News:
        """The oldest that waits: things before scores, because everything else on a page hangs on them."""
        while not self.things and not self.scores:
            self.woken.clear()
            await self.woken.wait()
        return self.things.pop(next(iter(self.things))) if self.things else self.scores.popleft()


@dataclass(slots=True)
class _Channel:
    task: asyncio.Task[None]
    latest: dict[tuple[str, str], News] = field(default_factory=dict)
    scores: deque[News] = field(default_factory=lambda: deque(maxlen=RECENT))
    readers: set[_Reader] = field(default_factory=set)

    def spread(self, found: Sequence[News]) -> None:
        """Keep what a look found, and tell whoever knows the rest."""
        for news in found:
            if news.kind == "score":
                self.scores.append(news)
            else:
                self.latest[(news.kind, news.about)] = news
            for reader in self.readers:
                if reader.greeted:
                    reader.tell(news)

    def greet(self, newcomers: Sequence[_Reader]) -> None:
        """Tell them all that is known."""
        for reader in newcomers:
            reader.greeted = True
            for news in (*self.latest.values(), *self.scores):
                reader.tell(news)


class Feed:
    """Channels by run. `look` gives what is new about a run since the look before; a new channel asks afresh."""

    def __init__(self, look: Callable[[RunId], Callable[[], Awaitable[list[News]]]], interval_s: float = 1.0) -> None:
        self._look, self._interval_s = look, interval_s
        self._channels: dict[RunId, _Channel] = {}

    async def follow(self, run: RunId) -> AsyncGenerator[News, None]:
        """What is known now, then what happens, until the reader leaves."""
        channel = self._channels.get(run)
        if channel is None:
            channel = _Channel(asyncio.create_task(self._watch(run)))
            self._channels[run] = channel
        reader = _Reader()
        channel.readers.add(reader)
        try:
            while True:
                yield await reader.next()
        finally:
            channel.readers.discard(reader)
            if not channel.readers:
                self._close(run)

    def _close(self, run: RunId) -> None:
        channel = self._channels.pop(run, None)
        if channel is not None:
            channel.task.cancel()

    async def _watch(self, run: RunId) -> None:
        look, channel, trouble = self._look(run), self._channels[run], ""
        while True:
            newcomers = [reader for reader in channel.readers if not reader.greeted]  # who comes later waits for a look
            try:
                channel.spread(await look())
                channel.greet(newcomers)
                trouble = ""
            except Exception as error:  # whatever it is: a reader cannot tell a dead watcher from a run without news
                if str(error) != trouble:  # once, for the next look is a second away
                    log.warning("no news", run=run, error=str(error), exc_info=not isinstance(error, ZeldaError))
                trouble = str(error)
            await asyncio.sleep(self._interval_s)
