"""The store in memory, for tests and simulations, with the rules of the real ones. Never for production."""

import time
from collections.abc import Callable

from shared.contracts.base import sha256
from shared.errors import DigestMismatch
from shared.store import keys
from shared.store.port import AlreadyExists, NotFound, ObjectEntry


class MemoryStore:
    """A dictionary with the store's interface. `clock` gives modification times in seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._objects: dict[str, tuple[bytes, float]] = {}
        self._clock = clock

    async def get(self, key: str, digest: str | None = None) -> bytes:
        """The object's bytes; see the port."""
        keys.split(key)
        if key not in self._objects:
            raise NotFound(f"no object {key!r} in the store")
        return verified(key, self._objects[key][0], digest)

    async def put(self, key: str, data: bytes) -> str:
        """Write or overwrite; see the port."""
        keys.split(key)
        self._objects[key] = (bytes(data), self._clock())
        return sha256(data)

    async def create(self, key: str, data: bytes) -> str:
        """Write if free; see the port."""
        if await self.exists(key):
            raise AlreadyExists(f"object {key!r} exists")
        return await self.put(key, data)

    async def exists(self, key: str) -> bool:
        """Whether the key is taken."""
        keys.split(key)
        return key in self._objects

    async def list(self, prefix: str) -> list[ObjectEntry]:
        """Entries under a prefix, by key."""
        keys.split(prefix, prefix=True)
        found = sorted(item for item in self._objects.items() if item[0].startswith(prefix))
        return [ObjectEntry(key, len(data), modified) for key, (data, modified) in found]

    async def delete(self, key: str) -> None:
        """Remove, if there."""
        keys.split(key)
        self._objects.pop(key, None)


def verified(key: str, data: bytes, digest: str | None) -> bytes:
    """`data` if it matches the digest, else DigestMismatch. Every adapter calls this, so no reader forgets it."""
    if digest is not None and sha256(data) != digest:
        raise DigestMismatch(f"object {key!r} has SHA-256 {sha256(data)}, expected {digest}: it was changed or damaged")
    return data
