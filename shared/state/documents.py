"""Reads documents that are created once and never change."""

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import structlog

from shared.contracts.base import Contract, sha256
from shared.errors import ContractError
from shared.store.port import Store
from shared.telemetry.log_once import LogOnce

PARALLEL: Final = 16  # concurrent reads: more would only queue in the store
Document = TypeVar("Document")
Parsed = TypeVar("Parsed", bound=Contract)
log = structlog.get_logger(__name__)


def parse_document(kind: type[Parsed], key: str, raw: bytes) -> Parsed:
    """Parse the object at `key`, or raise ContractError with one sentence that names the key and the field."""
    try:
        return kind.from_bytes(raw)
    except ContractError as error:
        raise ContractError(f"{key} is {error}; it is damaged, or a newer version wrote it.") from error


async def read_document(store: Store, kind: type[Parsed], key: str) -> Parsed:
    """Read and parse one object. NotFound if it is missing; ContractError, which names the key, if it is damaged."""
    return parse_document(kind, key, await store.get(key))


class DocumentReader(Generic[Document]):
    """Reads documents of one type, some at a time. A damaged one is logged once, as `event`, and read as None."""

    def __init__(self, store: Store, parse: Callable[[bytes], Document], event: str) -> None:
        """`parse` raises ContractError for damaged bytes."""
        self._store, self._parse = store, parse
        self._slots = asyncio.Semaphore(PARALLEL)
        self._refused: LogOnce[str] = LogOnce(log.error, event)

    async def read(self, key: str) -> tuple[Document, str] | None:
        """One document and the SHA-256 of its bytes, or None if it is damaged; NotFound if it is missing."""
        async with self._slots:
            raw = await self._store.get(key)
        try:
            return self._parse(raw), sha256(raw)
        except ContractError as error:
            self._refused.report(key, error, key=key)
            return None
