"""Tells an outage of what handlers depend on (the store) from trouble with one event.

During an outage nothing is fetched: else every waiting event would use up its tries and end as a dead letter, or sleep
for minutes after the store is back.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

CHECK_S: Final = 1.0  # one question in this time, however many events fail: a store that comes back must not drown


async def always_available() -> bool:
    """For handlers that depend on nothing but the bus."""
    return True


class OutageDetector:
    """`answers` says whether the dependencies can be used now; it is asked at most once a second."""

    def __init__(self, answers: Callable[[], Awaitable[bool]] = always_available) -> None:
        self._answers = answers
        self._lock = asyncio.Lock()
        self._asked = -CHECK_S
        self.active = False

    async def check(self) -> bool:
        """Whether there is an outage, as of at most a second ago."""
        async with self._lock:
            if time.monotonic() - self._asked >= CHECK_S:
                self.active = not await self._answers()
                self._asked = time.monotonic()
        return self.active
