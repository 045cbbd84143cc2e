"""Wakes the handler that waits for an epoch's scores. Losing this state costs one polling interval."""

import asyncio
from typing import Final

from shared.contracts.ids import RunId
from shared.process.bounded_cache import BoundedCache

MAX_OPEN_EPOCHS: Final = 256  # the least recently used epoch is evicted first; its handler then polls


class ScoreArrivals:
    """One asyncio event per epoch that somebody waits for."""

    def __init__(self) -> None:
        self._waiting: BoundedCache[tuple[RunId, int], asyncio.Event] = BoundedCache(MAX_OPEN_EPOCHS)

    def announce(self, run: RunId, epoch: int) -> None:
        """Wake the handler that waits for this epoch, if any."""
        waiting = self._waiting.get((run, epoch))
        if waiting is not None:
            waiting.set()

    def next_arrival(self, run: RunId, epoch: int) -> asyncio.Event:
        """Return an asyncio event that the epoch's next score sets."""
        return self._waiting.put((run, epoch), asyncio.Event())

    def close_epoch(self, run: RunId, epoch: int) -> None:
        """Forget an epoch that has its model."""
        self._waiting.pop((run, epoch))
