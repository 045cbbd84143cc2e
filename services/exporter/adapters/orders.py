"""Reads the orders of epochs: they hold a run's configuration, and name the reward model that shaped the epoch."""

from typing import Final

from shared.contracts.epoch import EpochStart
from shared.contracts.ids import RunId
from shared.process.bounded_cache import BoundedCache
from shared.state.documents import read_document
from shared.store import keys
from shared.store.port import Store

CACHED_EPOCHS: Final = 16  # an order takes up to some 100 kB; an evicted one is read again


class EpochOrders:
    """An order is created once and never changes, so it is read once for all segments of its epoch."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: BoundedCache[tuple[RunId, int], EpochStart] = BoundedCache(CACHED_EPOCHS)

    async def of(self, run: RunId, epoch: int) -> EpochStart:
        """The order of an epoch. Raises NotFound, or ContractError if it is unreadable."""
        known = self._known.get((run, epoch))
        if known is not None:
            return known
        return self._known.put((run, epoch), await read_document(self._store, EpochStart, keys.epoch_start(run, epoch)))
