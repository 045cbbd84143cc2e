"""Live news of runs for people who watch: one look at the store a second for each watched run, however many watch.

A slow reader loses its oldest news (it gets newer ones) and never slows anybody down.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import structlog

from shared.contracts.ids import RunId
from shared.errors import Transient

QUEUE: Final = 200  # news that one reader may lag behind
RECENT: Final = 30  # scores that a reader sees at once when it comes
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class News:
    """One piece of news: its kind (`run`, `progress`, `epoch`, `score`) and its JSON."""

    kind: str
    data: str
    about: str = ""  # which epoch or segment; newer news about the same thing replaces older


@dataclass(slots=True)
class _Channel:
    task: asyncio.Task[None]
    latest: dict[tuple[str, str], News] = field(default_factory=dict)
    scores: deque[News] = field(default_factory=lambda: deque(maxlen=RECENT))
    readers: set[asyncio.Queue[News]] = field(default_factory=set)


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
        queue: asyncio.Queue[News] = asyncio.Queue(QUEUE)
        for news in (*channel.latest.values(), *channel.scores):
            queue.put_nowait(news)
        channel.readers.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            channel.readers.discard(queue)
            if not channel.readers:
                self._close(run)

    def _close(self, run: RunId) -> None:
        channel = self._channels.pop(run, None)
        if channel is not None:
            channel.task.cancel()

    async def _watch(self, run: RunId) -> None:
        look = self._look(run)
        while True:
            try:
                for news in await look():
                    self._spread(run, news)
            except Transient as error:  # the store is away: readers see the age of the last news grow
                log.warning("no news", run=run, error=str(error))
            await asyncio.sleep(self._interval_s)

    def _spread(self, run: RunId, news: News) -> None:
        channel = self._channels.get(run)
        if channel is None:
            return
        if news.kind == "score":
            channel.scores.append(news)
        else:
            channel.latest[(news.kind, news.about)] = news
        for queue in channel.readers:
            if queue.full():
                with suppress(asyncio.QueueEmpty):
                    queue.get_nowait()
            queue.put_nowait(news)
