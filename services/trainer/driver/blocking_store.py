"""The asynchronous store for code that may block: one event loop in one thread, calls from any other.

Training blocks by nature (RLlib is synchronous); it must never run on an event loop, and a store call must never be
left without its time limit, which the store itself guarantees.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from shared.store.port import ObjectEntry, Store

T = TypeVar("T")


class BlockingStore:
    """The store port as plain functions. Raises the same errors."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="store", daemon=True)
        self._thread.start()

    def wait(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of any coroutine of the store's family, e.g. of a reader built on it."""
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    def get(self, key: str, digest: str | None = None) -> bytes:
        """See `Store.get`."""
        return self.wait(self.store.get(key, digest))

    def put(self, key: str, data: bytes) -> str:
        """See `Store.put`."""
        return self.wait(self.store.put(key, data))

    def create(self, key: str, data: bytes) -> str:
        """See `Store.create`."""
        return self.wait(self.store.create(key, data))

    def exists(self, key: str) -> bool:
        """See `Store.exists`."""
        return self.wait(self.store.exists(key))

    def list(self, prefix: str) -> list[ObjectEntry]:
        """See `Store.list`."""
        return self.wait(self.store.list(prefix))

    def delete(self, key: str) -> None:
        """See `Store.delete`."""
        self.wait(self.store.delete(key))

    def close(self) -> None:
        """Stop the loop. Calls still in flight fail."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
