"""The asynchronous store for blocking code: one event loop in a thread of its own, calls from any other thread.

Training blocks (RLlib is synchronous), so it must not run on an event loop. The store itself limits the time of a call.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from shared.store.port import ObjectEntry, Store

T = TypeVar("T")


class BlockingStore:
    """The store port as blocking functions. They raise the same errors."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="store", daemon=True)
        self._thread.start()

    def wait(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that uses the store on the store's loop and return its result."""
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
        """Stop the loop. Calls still in flight fail. A second call has no effect."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._loop.close()
