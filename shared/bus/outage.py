"""Distinguishes an outage of the handlers' dependencies (the store) from a problem with one event.

During an outage the loop fetches nothing. Otherwise every waiting event would exhaust its attempts, or wait for minutes
after the store is back.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final

CHECK_S: Final = 1.0  # at most one check in this time: a recovering store must not be flooded


async def always_available() -> bool:
    """For handlers that depend only on the bus."""
    return True


class OutageDetector:
    """`available` reports whether the dependencies can be used now; it is called at most once a second.

    `clock` is monotonic, in seconds.
    """

    def __init__(
        self,
        available: Callable[[], Awaitable[bool]] = always_available,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._available, self._clock = available, clock
        self._lock = asyncio.Lock()
        self._checked_at = -math.inf
        self.active = False

    async def check(self) -> bool:
        """Whether there is an outage; the answer is at most a second old."""
        async with self._lock:
            if self._clock() - self._checked_at >= CHECK_S:
                self.active = not await self._available()
                self._checked_at = self._clock()
        return self.active
