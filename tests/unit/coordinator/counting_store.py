"""A store that tells tests what was read."""

from typing import Any

from shared.store.memory import MemoryStore


class CountingStore(MemoryStore):
    """Notes the keys that are read."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.reads: list[str] = []

    async def get(self, key: str, digest: str | None = None) -> bytes:
        """Read and note."""
        self.reads.append(key)
        return await super().get(key, digest)
