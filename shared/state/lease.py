"""A lease in the object store: at most one of several processes acts, and its fence identifies it.

Every change is a new revision, made by `create`, so only one taker wins. Clocks of different hosts are never compared:
a lease has expired for a process that has seen the same revision for its whole TTL. The holder renews at a third of the
TTL and stops acting at two thirds, long before another process may start. A late action (the holder paused after its
check) is refused by the receiver: the fence only grows.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import structlog
from pydantic import Field

from shared.contracts.base import Contract
from shared.errors import ContractError, Transient
from shared.store import keys
from shared.store.create import create_if_absent, create_or_read
from shared.store.port import NotFound, Store
from shared.telemetry import metrics

KEPT: Final = 20  # newest revisions that are kept: a late `create` must still find its number taken
UNKNOWN: Final = "?"  # never the name of an owner
HELD: Final = metrics.gauge("lease_held_ratio", "1 while this process holds the lease", ["lease"])
TAKEN: Final = metrics.counter("lease_taken_total", "times this process acquired the lease", ["lease"])

log = structlog.get_logger(__name__)


class LeaseRevision(Contract):
    """One revision. An empty owner means a released lease. `fence` changes only with the owner."""

    owner: str = Field(max_length=200)
    fence: int = Field(ge=1)
    revision: int = Field(ge=1)


class Lease:
    """One process's view of one lease. `owner` must differ between processes; `clock` is monotonic, in seconds."""

    def __init__(
        self, store: Store, name: str, owner: str, ttl_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._name, self._owner, self._ttl_s, self._clock = store, name, owner, ttl_s, clock
        TAKEN.labels(name)  # exported as 0: Prometheus sees no increase in a series that begins at 1
        self._seen: LeaseRevision | None = None
        self._seen_at = clock()
        self._mine: LeaseRevision | None = None
        self._renewed_at = 0.0
        self._released = False
        self._stepping = asyncio.Lock()  # a renewal under way would keep what a release gives up

    @property
    def fence(self) -> int | None:
        """The fence with which this process may act now, or None."""
        if self._mine is None or self._clock() - self._renewed_at > self._ttl_s * 2 / 3:
            return None
        return self._mine.fence

    async def run(self) -> None:
        """Acquire the lease when it is free and keep it, until its release. Without the store the fence expires."""
        while not self._released:
            try:
                await self.step()
            except Transient as error:
                log.warning("lease not renewed", lease=self._name, error=str(error))
            HELD.labels(self._name).set(self.fence is not None)
            await asyncio.sleep(self._ttl_s / 3)

    async def step(self) -> None:
        """Read the latest revision once; acquire or renew the lease if possible."""
        async with self._stepping:
            await self._step()

    async def _step(self) -> None:
        latest = await self._latest()
        if self._mine is not None and latest is not None and latest.owner == self._owner:
            self._mine = latest  # including a revision whose answer was lost
        if self._mine is not None and latest != self._mine:
            log.warning("lease lost", lease=self._name, fence=self._mine.fence)
            self._mine = None
        if self._mine is not None:
            await self._write(self._mine.fence, self._mine.revision + 1)
        elif latest is None or latest.owner == "" or self._expired(latest):
            number = 1 if latest is None else latest.revision + 1
            await self._write(number, number)

    async def release(self) -> None:
        """Release the lease, so that another process can acquire it immediately. `run` ends."""
        self._released = True
        async with self._stepping:
            mine, self._mine = self._mine, None
            if mine is not None:
                free = LeaseRevision(owner="", fence=mine.fence, revision=mine.revision + 1)
                # False if another process has already acquired it.
                await create_if_absent(self._store, keys.lease_revision(self._name, free.revision), free.to_bytes())

    def _expired(self, latest: LeaseRevision) -> bool:
        """Whether this process has seen the same revision for the whole TTL."""
        if latest != self._seen:
            self._seen, self._seen_at = latest, self._clock()
        return self._clock() - self._seen_at > self._ttl_s

    async def _latest(self) -> LeaseRevision | None:
        entries = await self._store.list(keys.lease_prefix(self._name))
        found = (keys.lease_number(entry.key) for entry in entries)
        numbers = [number for number in found if number is not None]  # other objects are ignored
        for number in numbers[:-KEPT]:
            await self._store.delete(keys.lease_revision(self._name, number))
        return await self._read(numbers[-1]) if numbers else None

    async def _read(self, revision: int) -> LeaseRevision:
        try:
            return LeaseRevision.from_bytes(await self._store.get(keys.lease_revision(self._name, revision)))
        except NotFound as error:  # deleted between list and get: this process is far behind
            raise Transient(f"lease {self._name!r} changes faster than it can be read") from error
        except ContractError:
            # A power failure may truncate the newest revision. Its owner is unknown, and it expires like any other.
            return LeaseRevision(owner=UNKNOWN, fence=revision, revision=revision)

    async def _write(self, fence: int, revision: int) -> None:
        """Create a revision. The TTL starts before the request: other processes start theirs when it appears."""
        started = self._clock()
        wanted = LeaseRevision(owner=self._owner, fence=fence, revision=revision)
        key = keys.lease_revision(self._name, revision)
        committed = await create_or_read(self._store, key, wanted.to_bytes())
        if committed.data != wanted.to_bytes():  # equal bytes are our own: the answer to an earlier attempt was lost
            self._mine = None
            return
        # A process that slept may have created a revision that the others have already passed.
        if await self._latest() != wanted:
            self._mine = None
            return
        if self._mine is None:
            TAKEN.labels(self._name).inc()
            log.info("lease acquired", lease=self._name, fence=fence)
        self._mine, self._renewed_at = wanted, started
