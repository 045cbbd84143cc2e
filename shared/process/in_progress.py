"""Prevents concurrent work on the same key within one process.

The bus may deliver an event again while its first delivery is still being handled. The first delivery answers for both.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class InProgress(Generic[Key]):
    """The keys that are being worked on. Not for threads: the check and the claim must run on one event loop."""

    def __init__(self) -> None:
        self._keys: set[Key] = set()

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    @contextmanager
    def claim(self, key: Key) -> Iterator[bool]:
        """Claim `key` for the body. Yields False, and claims nothing, when the key is already in progress."""
        if key in self._keys:
            yield False
            return
        self._keys.add(key)
        try:
            yield True
        finally:
            self._keys.remove(key)
