"""Reads commit objects and keeps the parsed ones: a commit object never changes, so one read is enough.

Never cache what is overwritten (heartbeat, progress, summary) here.
"""

from collections import OrderedDict
from typing import Any, Final, TypeVar

from services.coordinator.domain.view import Committed
from shared.contracts.base import Contract, sha256
from shared.store.port import Store

Document = TypeVar("Document", bound=Contract)
MOST: Final = 256
"""Documents kept. A finished epoch's list may hold thousands of segments, so more would cost real memory."""


class Documents:
    """A store of immutable documents with a bounded memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, Committed[Any]] = OrderedDict()

    async def get(self, key: str, kind: type[Document]) -> Committed[Document]:
        """The commit object at `key`; raise NotFound or ContractError."""
        kept = self._kept.get(key)
        if kept is None:
            raw = await self._store.get(key)
            kept = Committed(key, sha256(raw), kind.from_bytes(raw))
            self._kept[key] = kept
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return kept
