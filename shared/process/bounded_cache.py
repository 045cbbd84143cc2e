"""A dictionary of bounded size that drops the least recently used key first."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """At most `size` values. Reading or writing a key makes it the most recently used one; `in` does not."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"a cache needs room for at least one value, not {size}")
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value of `key`, or None."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: Key, value: Value) -> Value:
        """Store and return `value`; drop the least recently used key when the cache is full."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._size:
            self._values.popitem(last=False)
        return value

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of `key`; `make` supplies a missing one."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        return self.put(key, make())

    def pop(self, key: Key) -> Value | None:
        """Remove `key` and return its value, or None."""
        return self._values.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[Key]:
        """Keys, least recently used first."""
        return iter(list(self._values))

    def __len__(self) -> int:
        return len(self._values)
