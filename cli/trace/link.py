"""One object of a chain, and whether the store still holds what its referrer meant."""

from dataclasses import dataclass, field
from typing import Literal

from shared.contracts.base import sha256
from shared.store.port import NotFound, Store

State = Literal["stored", "removed", "changed", "unknown", "not kept"]


@dataclass(frozen=True, slots=True)
class Link:
    """`what` it is, the `key` and SHA-256 `digest` of its object, and facts about it, one line each.

    `changed` means that the object has another digest than its referrer says; `unknown` that its referrer does not say
    which objects it means; `not kept` that no object ever existed.
    """

    what: str
    state: State
    key: str | None = None
    digest: str | None = None
    facts: list[str] = field(default_factory=list)
    text: str | None = None
    """What a judge read about the segment."""


@dataclass(frozen=True, slots=True)
class Found:
    """An object's content, or None where the store has none, and its state."""

    data: bytes | None
    state: State
    digest: str | None


async def fetch(store: Store, key: str, digest: str | None = None) -> Found:
    """Read an object and compare it with the digest of its referrer, if there is one."""
    try:
        data = await store.get(key)
    except NotFound:
        return Found(None, "removed", digest)
    found = sha256(data)
    return Found(data, "stored" if digest in (None, found) else "changed", found)
