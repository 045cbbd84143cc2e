"""What the routes work with, and the commands behind POST: each is one new revision of a run's record."""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from services.coordinator.adapters.feed import Feed
from services.coordinator.adapters.tallies import Tallies
from services.coordinator.adapters.views import Views
from services.coordinator.api.models import NewRun
from services.coordinator.conductor import SOURCE
from services.coordinator.domain.lifecycle import WrongState, resume, stop
from services.coordinator.domain.rings import start_order, state
from services.coordinator.reporter import Reporter
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.errors import Transient
from shared.state.runs import Runs
from shared.store import keys
from shared.store.port import AlreadyExists, Store

ATTEMPTS = 5  # a revision is lost only to another writer, and those are two coordinators and a person


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything a route may touch. `announce` publishes an event with a ring (see the bus's port).

    Losing an event only delays, so announcing never fails."""

    store: Store
    runs: Runs
    views: Views
    tallies: Tallies
    reporter: Reporter
    feed: Feed
    announce: Callable[[Envelope, int], Awaitable[None]]
    now: Callable[[], datetime]

    async def create(self, request: NewRun, idempotency_key: str | None) -> tuple[RunRecord, bool]:
        """The run's record and whether it is new. The same key and body give the same run, however often."""
        run = request.run or _name(idempotency_key)
        if idempotency_key is not None:
            await self._bind(idempotency_key, run, named=request.run is not None)
        now = self.now()
        record = RunRecord(run=run, revision=0, state="created", config=request.config, created=now, updated=now)
        try:
            await self.runs.create(record)
        except AlreadyExists:
            # Without a key: ours after all, if the answer to an earlier attempt was lost on its way.
            if idempotency_key is not None or await self.runs.revision(run, 0) != record:
                return await self._existing(record, idempotency_key), False
        await self._announce(record)
        return record, True

    async def stop(self, run: RunId) -> RunRecord:
        """Ask the run to stop; doing it twice is the same as once."""
        return await self._change(run, stop)

    async def resume(self, run: RunId) -> RunRecord:
        """Let a stopped or failed run go on from its last checkpoint."""
        # Read before anything changes: a run whose documents cannot be read would not go on.
        current = (await self.views.read(await self.runs.latest(run))).current
        record = await self._change(run, resume)
        if current is not None and current.finished is None:
            # The order of the unfinished epoch was heard long ago; the bus lets it pass again only with a ring.
            order = wrap(start_order(current), source=SOURCE, fence=record.fence, time=self.now())
            await self.announce(order, record.attempt)
        return record

    async def _change(self, run: RunId, command: Callable[[RunRecord, datetime], RunRecord | None]) -> RunRecord:
        for _ in range(ATTEMPTS):
            record = await self.runs.latest(run)
            following = command(record, self.now())
            if following is None:
                return record
            try:
                await self.runs.append(following)
            except AlreadyExists:
                continue
            await self._announce(following)
            return following
        raise Transient(f"Run {run} is being changed by others all the time: try again.")

    async def _bind(self, idempotency_key: str, run: RunId, named: bool) -> None:
        """Let a key mean one run. It comes before the run: who sends the request again after a crash makes that run.

        A name that somebody chose (`named`) may be that of an older run, which a new key does not mean.
        """
        key = keys.run_request(sha256(idempotency_key.encode()).hexdigest())
        if named and not await self.store.exists(key) and await self.store.exists(keys.run_revision(run, 0)):
            raise WrongState(_taken(run))
        try:
            await self.store.create(key, run.encode())
        except AlreadyExists:
            bound = (await self.store.get(key)).decode()
            if bound != run:
                raise WrongState(
                    f"This Idempotency-Key was used for run {bound}: use a new Idempotency-Key for a new run."
                ) from None

    async def _existing(self, wanted: RunRecord, idempotency_key: str | None) -> RunRecord:
        first = await self.runs.revision(wanted.run, 0)
        if idempotency_key is None:
            raise WrongState(_taken(wanted.run))
        if first.config != wanted.config:
            raise WrongState(
                f"Run {wanted.run} was made with another configuration: use a new Idempotency-Key for a new run."
            )
        return await self.runs.latest(wanted.run)

    async def _announce(self, record: RunRecord) -> None:
        await self.announce(wrap(state(record), source=SOURCE, fence=record.fence, time=self.now()), 0)


def _taken(run: RunId) -> str:
    return f"There is a run {run} already: choose another name."


def _name(idempotency_key: str | None) -> RunId:
    """A name from the key, so that the key itself decides which run is meant; else a random one."""
    tail = sha256(idempotency_key.encode()).hexdigest() if idempotency_key is not None else secrets.token_hex(32)
    return RunId(f"run-{tail[:12]}")
