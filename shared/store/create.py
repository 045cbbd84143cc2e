"""The commit pattern: create an object, or read the one that another writer committed first."""

from typing import NamedTuple

from shared.contracts.base import sha256
from shared.store.port import AlreadyExists, Store


class CommittedObject(NamedTuple):
    """The bytes under a key, their SHA-256, and whether this call created them."""

    data: bytes
    digest: str
    created: bool


async def create_or_read(store: Store, key: str, data: bytes) -> CommittedObject:
    """Create the object, or return the existing one: the first commit wins."""
    try:
        return CommittedObject(data, await store.create(key, data), created=True)
    except AlreadyExists:
        existing = await store.get(key)
        return CommittedObject(existing, sha256(existing), created=False)


async def create_if_absent(store: Store, key: str, data: bytes) -> bool:
    """Create the object; return False if the key is taken."""
    try:
        await store.create(key, data)
    except AlreadyExists:
        return False
    return True
