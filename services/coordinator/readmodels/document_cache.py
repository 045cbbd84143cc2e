"""Reads commit objects and caches the parsed ones: a commit object never changes, so one read is enough.

Never read an object here that is overwritten (heartbeat, progress, summary).
"""

from datetime import datetime
from typing import Any, Final, TypeVar

from services.coordinator.domain.run_view import Committed
from shared.contracts.base import Contract, sha256
from shared.process.bounded_cache import BoundedCache
from shared.state.documents import parse_document
from shared.store.port import Store

Document = TypeVar("Document", bound=Contract)
MAX_DOCUMENTS: Final = 256
"""The list of a finished epoch may hold thousands of segments, so more documents would cost real memory."""


class DocumentCache:
    """An LRU cache of immutable documents."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cached: BoundedCache[tuple[datetime, str], Committed[Any]] = BoundedCache(MAX_DOCUMENTS)

    async def get(self, created: datetime, key: str, document_type: type[Document]) -> Committed[Document]:
        """The commit object at `key` of the run created at `created`; raises NotFound or ContractError.

        The name of a deleted run stays taken. A store that was restored or edited by hand may hold another run of that
        name: it has the same keys, but another time of creation.
        """
        place = (created, key)
        cached = self._cached.get(place)
        return cached if cached is not None else self._cached.put(place, await self._read(key, document_type))

    async def _read(self, key: str, document_type: type[Document]) -> Committed[Document]:
        raw = await self._store.get(key)
        return Committed(key, sha256(raw), parse_document(document_type, key, raw))
