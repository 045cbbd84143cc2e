"""The clocks of a simulation: seconds since the Unix epoch and dates, both from the loop's simulated time."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """Called, it gives seconds since the Unix epoch."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __call__(self) -> float:
        return START.timestamp() + self._loop.time()

    def now(self) -> datetime:
        """The simulated date."""
        return START + timedelta(seconds=self._loop.time())
