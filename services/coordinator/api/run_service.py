"""The commands behind POST: each writes one new revision of a run's record and publishes its event."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

import structlog

from services.coordinator.api.models import NewRun
from services.coordinator.domain.events import SOURCE, rm_ready, run_changed
from services.coordinator.domain.lifecycle import RunConflict, resume, stop
from services.coordinator.readmodels.read_models import ReadModels
from shared.bus.port import Bus
from shared.contracts.envelope import wrap
from shared.contracts.events import EventData
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.errors import Transient
from shared.store import keys
from shared.store.create import create_or_read
from shared.store.port import AlreadyExists, Store

ATTEMPTS: Final = 5
"""Only the coordinators and a few users write revisions, so five lost races mean a loop somewhere."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RunService:
    """Creates, stops and resumes runs. `now` is injected, so that a test owns the time."""

    bus: Bus
    store: Store
    models: ReadModels
    now: Callable[[], datetime]

    async def create(self, request: NewRun, idempotency_key: str | None) -> tuple[RunRecord, bool]:
        """The run's record, and whether it is new. The same key with the same body always returns the same run."""
        run = request.run or _run_id(idempotency_key)
        if idempotency_key is not None:
            await self._bind(idempotency_key, run, named=request.run is not None)
        now = self.now()
        record = RunRecord(run=run, revision=0, state="created", config=request.config, created=now, updated=now)
        try:
            await self.models.runs.create(record)
        except AlreadyExists:
            # Without a key, an equal record is this request's own: the response to an earlier attempt was lost.
            if idempotency_key is not None or await self.models.runs.revision(run, 0) != record:
                return await self._existing(record, idempotency_key), False
        await self._publish(run_changed(record), record)
        return record, True

    async def stop(self, run: RunId) -> RunRecord:
        """Ask the run to stop. Idempotent."""
        return await self._change(run, stop)

    async def resume(self, run: RunId) -> RunRecord:
        """Resume a stopped or failed run from its last checkpoint."""
        # Read before the change: a run with unreadable documents cannot go on.
        current = (await self.models.views.read(await self.models.runs.latest(run))).current
        record = await self._change(run, resume)
        if current is not None and current.finished is None:
            # The trainer had the order of the unfinished epoch long ago; only a nonce lets the bus deliver it again.
            await self._publish(rm_ready(current), record, nonce=record.attempt)
        return record

    async def _change(self, run: RunId, command: Callable[[RunRecord, datetime], RunRecord | None]) -> RunRecord:
        for _ in range(ATTEMPTS):
            record = await self.models.runs.latest(run)
            revision = command(record, self.now())
            if revision is None:
                return record
            try:
                await self.models.runs.append(revision)
            except AlreadyExists:
                continue
            await self._publish(run_changed(revision), revision)
            return revision
        raise Transient(f"Run {run} is under concurrent modification: retry.")

    async def _bind(self, idempotency_key: str, run: RunId, named: bool) -> None:
        """Bind a key to one run, before the run is created: a retry after a crash then creates the same run.

        A name from the user (`named`) may belong to an older run; a new key cannot mean that one.
        """
        key = keys.run_request(sha256(idempotency_key.encode()).hexdigest())
        if named and not await self.store.exists(key) and await self.store.exists(keys.run_revision(run, 0)):
            raise RunConflict(_name_taken(run))
        bound = (await create_or_read(self.store, key, run.encode())).data.decode()
        if bound != run:
            raise RunConflict(
                f"This Idempotency-Key was used for run {bound}: use a new Idempotency-Key for a new run."
            )

    async def _existing(self, wanted: RunRecord, idempotency_key: str | None) -> RunRecord:
        first = await self.models.runs.revision(wanted.run, 0)
        if idempotency_key is None:
            raise RunConflict(_name_taken(wanted.run))
        if first.config != wanted.config:
            raise RunConflict(
                f"Run {wanted.run} was created with another configuration: use a new Idempotency-Key for a new run."
            )
        return await self.models.runs.latest(wanted.run)

    async def _publish(self, data: EventData, record: RunRecord, *, nonce: int = 0) -> None:
        """Publish an event of the run. A failure is only logged: the next pass of the reconciler needs no event."""
        event = wrap(data, source=SOURCE, fence=record.fence, time=self.now())
        try:
            await self.bus.publish(event, replay_nonce=nonce)
        except Transient as error:
            log.warning("event not published", run=event.runid, type=event.type, error=str(error))


def _name_taken(run: RunId) -> str:
    return f"Run {run} already exists: choose another name."


def _run_id(idempotency_key: str | None) -> RunId:
    """A name derived from the key, so that a retry names the same run; a random name without a key."""
    tail = sha256(idempotency_key.encode()).hexdigest() if idempotency_key is not None else secrets.token_hex(32)
    return RunId(f"run-{tail[:12]}")
