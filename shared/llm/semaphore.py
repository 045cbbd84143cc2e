"""Admits as many calls as an adaptive limit allows, in order of arrival.

A queued call gives up when nothing moves: while calls are answered the queue advances, and queued calls stay.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class AcquireTimeout(Exception):
    """No slot became free, and no call was answered."""


class AdaptiveSemaphore:
    """A semaphore whose size may change at any time. For one event loop."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._last_progress = 0.0
        self.in_flight = 0

    @property
    def queued(self) -> int:
        """Number of calls that wait for a slot."""
        return len(self._waiting)

    def record_progress(self) -> None:
        """Report that a call was answered: the wait of every queued call starts again."""
        self._last_progress = time.monotonic()

    @asynccontextmanager
    async def slot(self, wait_s: float) -> AsyncIterator[None]:
        """Hold one slot. Raises AcquireTimeout after `wait_s` without a free slot and without any answer."""
        await self._acquire(wait_s)
        try:
            yield
        finally:
            self.in_flight -= 1
            self._admit()

    async def _acquire(self, wait_s: float) -> None:
        if self.in_flight < self._limit() and not self._waiting:
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        begun = time.monotonic()
        try:
            while not turn.done():
                left = max(begun, self._last_progress) + wait_s - time.monotonic()
                if left <= 0:
                    raise AcquireTimeout(f"no free slot within {wait_s:g} s, and no call was answered")
                await asyncio.wait([turn], timeout=left)
        except (AcquireTimeout, asyncio.CancelledError):
            self._give_up(turn)
            raise

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
        elif turn.done() and not turn.cancelled():  # admitted in the same moment: pass the slot on
            self.in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        """Admit the longest-waiting calls as far as the limit allows."""
        while self._waiting and self.in_flight < self._limit():
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
