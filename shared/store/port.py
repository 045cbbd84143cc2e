"""The object store as services see it. Adapters: S3, a local directory, memory; one contract suite tests all.

The store is the truth and `create` is the commit: the first writer of a key wins, all others receive AlreadyExists.
"""

from dataclasses import dataclass
from typing import Protocol

from shared.errors import Permanent, ZeldaError


class AlreadyExists(ZeldaError):
    """`create` found the key taken. Usually success: the same work was done before."""


class NotFound(Permanent):
    """No object has this key."""


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """One listed object: its key, size in bytes and modification time in seconds since the Unix epoch."""

    key: str
    size: int
    modified: float


class Store(Protocol):
    """Asynchronous object store. No call lasts longer than 15 s; an unreachable server raises Transient."""

    async def get(self, key: str, digest: str | None = None) -> bytes:
        """Return the object, or raise NotFound; with `digest`, raise DigestMismatch if the content differs."""
        ...

    async def put(self, key: str, data: bytes) -> str:
        """Write or overwrite the object and return its SHA-256."""
        ...

    async def create(self, key: str, data: bytes) -> str:
        """Write the object only if the key is free and return its SHA-256, else raise AlreadyExists."""
        ...

    async def exists(self, key: str) -> bool:
        """Whether the key is taken."""
        ...

    async def list(self, prefix: str) -> list[ObjectEntry]:
        """All objects whose key starts with `prefix` (which ends in a slash), ordered by key."""
        ...

    async def delete(self, key: str) -> None:
        """Remove the object; a missing one is not an error."""
        ...
