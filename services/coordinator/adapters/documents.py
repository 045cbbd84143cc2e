"""Reads commit objects and keeps the parsed ones: a commit object never changes, so one read is enough.

Never cache what is overwritten (heartbeat, progress, summary) here.
"""

from collections import OrderedDict
from datetime import datetime
from typing import Any, Final, TypeVar

from services.coordinator.domain.view import Committed
from shared.contracts.base import Contract, sha256
from shared.errors import ContractError
from shared.store.port import Store

Document = TypeVar("Document", bound=Contract)
MOST: Final = 256
"""Documents kept. A finished epoch's list may hold thousands of segments, so more would cost real memory."""


class Documents:
    """A store of immutable documents with a bounded memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[datetime, str], Committed[Any]] = OrderedDict()

    async def get(self, created: datetime, key: str, kind: type[Document]) -> Committed[Document]:
        """The commit object at `key` of the run that was `created` then; raise NotFound or ContractError.

        A run that was deleted and made again has the same keys, but was created at another time.
        """
        place = (created, key)
        kept = self._kept.get(place)
        if kept is None:
            kept = self._kept[place] = await self._read(key, kind)
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(place)
        return kept

    async def _read(self, key: str, kind: type[Document]) -> Committed[Document]:
        raw = await self._store.get(key)
        try:
            return Committed(key, sha256(raw), kind.from_bytes(raw))
        except ContractError as error:
            raise ContractError(f"{key} is {error}; it is damaged, or a newer version wrote it.") from error
