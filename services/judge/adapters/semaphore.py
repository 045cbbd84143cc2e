"""Lets as many calls through as the adaptive limit allows, first come first served.

Waiting ends when nothing moves: as long as calls are answered the line gets shorter, and whoever is in it stays.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class AcquireTimeout(Exception):
    """No place became free, and no call was answered."""


class AdaptiveSemaphore:
    """A semaphore whose size may change between any two calls. For one event loop."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._last_progress = 0.0
        self.in_flight = 0

    def record_progress(self) -> None:
        """A call was answered: everybody's wait begins anew."""
        self._last_progress = time.monotonic()

    @asynccontextmanager
    async def slot(self, wait_s: float) -> AsyncIterator[None]:
        """Hold one place; raise Busy when none became free and no call was answered for `wait_s`."""
        await self._enter(wait_s)
        try:
            yield
        finally:
            self.in_flight -= 1
            self._admit()

    async def _enter(self, wait_s: float) -> None:
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
                    raise AcquireTimeout(f"no free place within {wait_s:g} s, and no call was answered")
                await asyncio.wait([turn], timeout=left)
        except (AcquireTimeout, asyncio.CancelledError):
            self._give_up(turn)
            raise

    def _give_up(self, turn: "asyncio.Future[None]") -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
        elif turn.done() and not turn.cancelled():  # admitted in the same moment: pass the place on
            self.in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        """Let in whoever waited longest, as far as the limit allows."""
        while self._waiting and self.in_flight < self._limit():
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
