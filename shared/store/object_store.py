"""The store on S3 or in a local directory, through obstore. No call waits longer than `CALL_S`.

The adapter makes two quick retries; the bus makes the slow ones. An absent or refusing server is Transient, because
stores also refuse while they start. A service checks its credentials at its start.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import obstore
from obstore import exceptions
from obstore.store import LocalStore, S3Store

from shared.contracts.base import sha256
from shared.errors import Transient, ZeldaError
from shared.store import keys
from shared.store.memory import verified
from shared.store.port import AlreadyExists, NotFound, ObjectEntry

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, RetryConfig

CALL_S: Final = 15.0  # a longer wait on a dead store looks like a hung service
_CLIENT: "Final[ClientConfig]" = {"connect_timeout": "2s", "timeout": "14s", "read_timeout": "10s"}
_RETRY: "Final[RetryConfig]" = {
    "max_retries": 2,  # the bus redelivers; more retries here would multiply with its own
    "retry_timeout": timedelta(seconds=10),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1), "base": 2},
}

Backend = S3Store | LocalStore


class ObjectStore:
    """One obstore backend per bucket; the first part of a key chooses it."""

    def __init__(self, backends: Mapping[str, Backend], call_s: float = CALL_S) -> None:
        self._backends = dict(backends)
        self._call_s = call_s

    async def get(self, key: str, digest: str | None = None) -> bytes:
        """The object's bytes; see the port."""
        backend, path = self._locate(key)
        async with self._bounded("get", key):
            result = await obstore.get_async(backend, path)
            data = bytes(await result.bytes_async())
        return verified(key, data, digest)

    async def put(self, key: str, data: bytes) -> str:
        """Write or overwrite; see the port."""
        backend, path = self._locate(key)
        async with self._bounded("put", key, writes=True):
            await obstore.put_async(backend, path, data, use_multipart=False)
        return sha256(data)

    async def create(self, key: str, data: bytes) -> str:
        """Write if free; see the port. The server (If-None-Match) or the file system (link) decides the race."""
        backend, path = self._locate(key)
        async with self._bounded("create", key, writes=True):
            await obstore.put_async(backend, path, data, mode="create", use_multipart=False)
        return sha256(data)

    async def exists(self, key: str) -> bool:
        """Whether the key is taken."""
        backend, path = self._locate(key)
        try:
            async with self._bounded("exists", key):
                try:
                    await obstore.head_async(backend, path)
                except (exceptions.NotFoundError, FileNotFoundError):
                    await obstore.get_async(
                        backend, path
                    )  # HEAD cannot distinguish a missing object from a missing bucket
        except NotFound:
            return False
        return True

    async def list(self, prefix: str) -> list[ObjectEntry]:
        """Entries under a prefix, by key. The time limit holds for each page of a thousand."""
        bucket, path = keys.split(prefix, prefix=True)
        pages = obstore.list(self._backends[bucket], prefix=path or None, chunk_size=1000).__aiter__()
        found: list[ObjectEntry] = []
        while True:
            async with self._bounded("list", prefix):
                page = await anext(pages, None)
            if page is None:
                return sorted(found, key=lambda entry: entry.key)
            found += [_entry(bucket, meta) for meta in page]

    async def delete(self, key: str) -> None:
        """Remove, if there."""
        backend, path = self._locate(key)
        try:
            async with self._bounded("delete", key):
                await obstore.delete_async(backend, path)
        except NotFound:
            return

    def _locate(self, key: str) -> tuple[Backend, str]:
        bucket, path = keys.split(key)
        return self._backends[bucket], path

    @asynccontextmanager
    async def _bounded(self, verb: str, key: str, writes: bool = False) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._call_s):
                yield
        except TimeoutError as error:
            raise Transient(f"store: {verb} {key!r} gave no answer in {self._call_s:g} s") from error
        except (exceptions.BaseError, OSError) as error:
            raise _translated(verb, key, error, writes) from error


def _entry(bucket: str, meta: "ObjectMeta") -> ObjectEntry:
    return ObjectEntry(f"{bucket}/{meta['path']}", meta["size"], meta["last_modified"].timestamp())


def _translated(verb: str, key: str, error: Exception, writes: bool) -> ZeldaError:
    """Translate an error of obstore; the message has the first line of the cause."""
    if isinstance(error, exceptions.AlreadyExistsError | exceptions.PreconditionError | FileExistsError):
        return AlreadyExists(f"object {key!r} exists")
    missing = isinstance(error, exceptions.NotFoundError | FileNotFoundError)
    # A missing bucket must not look like a missing object: only the bucket can appear later, by provisioning.
    if missing and not writes and "NoSuchBucket" not in str(error):
        return NotFound(f"no object {key!r} in the store")
    return Transient(f"store: {verb} {key!r} failed: {str(error).splitlines()[0][:300]}")


def local_store(directory: Path) -> ObjectStore:
    """A store in `directory`, one sub-directory per bucket, created if missing."""
    return ObjectStore({bucket: LocalStore(directory / bucket, mkdir=True) for bucket in keys.BUCKETS})


def s3_store(
    prefix: str,
    endpoint: str,
    access_key: str,
    secret_key: str,
    region: str,
    ca: str | None = None,
    call_s: float = CALL_S,
) -> ObjectStore:
    """A store in the buckets `<prefix>-episodes` and `<prefix>-models` (path style). `ca` is PEM text."""
    config = _s3_config(endpoint, access_key, secret_key, region, ca)
    return ObjectStore({bucket: S3Store(f"{prefix}-{bucket}", **config) for bucket in keys.BUCKETS}, call_s)


def single_bucket_store(
    name: str, endpoint: str, access_key: str, secret_key: str, region: str, ca: str | None = None
) -> ObjectStore:
    """A store in one existing bucket, with the folders `episodes/` and `models/`."""
    config = _s3_config(endpoint, access_key, secret_key, region, ca)
    return ObjectStore({bucket: S3Store(name, prefix=bucket, **config) for bucket in keys.BUCKETS})


def _s3_config(endpoint: str, access_key: str, secret_key: str, region: str, ca: str | None) -> dict[str, Any]:
    client: ClientConfig = {**_CLIENT, "allow_http": endpoint.startswith("http://")}
    if ca is not None:
        client["root_certificate"] = ca
    return {
        "endpoint": endpoint,
        "access_key_id": access_key,
        "secret_access_key": secret_key,
        "region": region,
        "virtual_hosted_style_request": False,
        "client_options": client,
        "retry_config": _RETRY,
    }
