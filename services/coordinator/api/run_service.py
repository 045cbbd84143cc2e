"""The commands behind POST: each writes one new revision of a run's record and publishes its event."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Final

import structlog

from services.coordinator.api.models import NewRun
from services.coordinator.api.run_defaults import RunDefaults, UnsuitableRun
from services.coordinator.api.run_deletion import RunDeletion
from services.coordinator.domain.events import SOURCE, export_requested, rm_ready, run_changed
from services.coordinator.domain.lifecycle import RunBusy, RunConflict, resume, stop
from services.coordinator.readmodels.read_models import ReadModels
from shared.bus.port import Bus
from shared.contracts.envelope import wrap
from shared.contracts.events import EventData
from shared.contracts.ids import Digest, RunId, Tag
from shared.contracts.progress import RunNotes
from shared.contracts.run import RunConfig, RunRecord
from shared.errors import Permanent, Transient
from shared.state.deleted_runs import was_deleted
from shared.state.saved_states import require_playable
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
    defaults: RunDefaults = field(default_factory=RunDefaults)

    async def create(self, request: NewRun, idempotency_key: str | None) -> tuple[RunRecord, bool]:
        """The run's record, and whether it is new. The same key with the same body always returns the same run."""
        config = self.defaults.complete(request.config)
        await self._require_starts(config)
        run = request.run or _run_id(idempotency_key)
        key = None if idempotency_key is None else Digest(sha256(idempotency_key.encode()).hexdigest())
        if await was_deleted(self.store, run):
            raise RunConflict(
                f"Run {run} was deleted and its name stays taken: choose another name or Idempotency-Key."
            )
        bound_before = key is not None and await self._bind(key, run, named=request.run is not None)
        now = self.now()
        record = RunRecord(run=run, revision=0, state="created", config=config, created=now, updated=now, request=key)
        try:
            await self.models.runs.create(record)
            self.models.known.observe(record)
        except AlreadyExists:
            # Without a key, an equal record is this request's own: the response to an earlier attempt was lost.
            if key is not None or await self.models.runs.revision(run, 0) != record:
                return await self._existing(record, bound_before), False
        await self._publish(run_changed(record), record)
        return record, True

    async def _require_starts(self, config: RunConfig) -> None:
        """Raise UnsuitableRun if a saved state that episodes shall begin at is unknown, or of another game."""
        try:
            require_playable(await self.models.states.named(config.starts), config)
        except Permanent as error:
            raise UnsuitableRun(f"config.starts: {error}.") from error

    async def request_export(self, place: keys.SegmentPlace) -> None:
        """Ask the exporter for one segment's video. Idempotent: the exporter skips an export that exists."""
        record = await self.models.runs.latest(place.run)
        await self._publish(export_requested(place, await self.models.archives.digest(place)), record)

    async def write_notes(self, run: RunId, note: str, tags: Sequence[Tag]) -> RunNotes:
        """Replace the note and the tags of a run."""
        await self.models.runs.latest(run)
        notes = RunNotes(run=run, note=note, tags=sorted(set(tags)), updated=self.now())
        await self.store.put(keys.run_notes(run), notes.to_bytes())
        return notes

    async def stop(self, run: RunId) -> RunRecord:
        """Ask the run to stop. Idempotent."""
        return await self._change(run, stop)

    async def resume(self, run: RunId) -> RunRecord:
        """Resume a stopped or failed run from its last checkpoint."""
        # Read before the change: a run with unreadable documents cannot continue.
        current = (await self.models.views.read(await self.models.runs.latest(run))).current
        record = await self._change(run, resume)
        if current is not None and current.finished is None:
            # The trainer had the order of the unfinished epoch long ago; only a nonce lets the bus deliver it again.
            await self._publish(rm_ready(current), record, nonce=record.attempt)
        return record

    async def delete(self, run: RunId) -> tuple[dict[str, int], int]:
        """Delete a run that is not active; return the number of objects by kind, and their bytes."""
        deleted = await RunDeletion(self.store, self.models.runs).delete(run)
        self.models.forget(run)
        self.models.archives.forget(run)
        self.models.known.forget(run)
        return deleted

    async def _change(self, run: RunId, command: Callable[[RunRecord, datetime], RunRecord | None]) -> RunRecord:
        for _ in range(ATTEMPTS):
            record = await self.models.runs.latest(run)
            if await was_deleted(self.store, run):
                raise RunConflict(f"Run {run} is being deleted: start a new run instead.")
            revision = command(record, self.now())
            if revision is None:
                return record
            try:
                await self.models.runs.append(revision)
                self.models.known.observe(revision)
            except AlreadyExists:
                continue
            await self._publish(run_changed(revision), revision)
            return revision
        raise RunBusy(f"Run {run} is under concurrent modification: retry.")

    async def _bind(self, digest: Digest, run: RunId, named: bool) -> bool:
        """Bind a key to one run, before the run is created: a retry after a crash then creates the same run.

        Return whether it was bound already.

        A name from the user (`named`) may belong to an older run; a new key cannot mean that one.
        """
        key = keys.run_request(digest)
        if named and not await self.store.exists(key) and await self.store.exists(keys.run_revision(run, 0)):
            raise RunConflict(_name_taken(run))
        binding = await create_or_read(self.store, key, run.encode())
        bound = binding.data.decode()
        if bound != run:
            raise RunConflict(
                f"This Idempotency-Key was used for run {bound}: use a new Idempotency-Key for a new run."
            )
        return not binding.created

    async def _existing(self, wanted: RunRecord, bound_before: bool) -> RunRecord:
        """The run that the request's key made. RunConflict for all others: two users must not own one run."""
        first = await self.models.runs.revision(wanted.run, 0)
        # A record older than 2026-11-24 has no key: the binding that it wrote decides.
        if wanted.request is None or (first.request != wanted.request and not (first.request is None and bound_before)):
            if wanted.request is not None and not bound_before:
                await self.store.delete(keys.run_request(wanted.request))  # the key can still make another run
            raise RunConflict(_name_taken(wanted.run))
        if first.config != wanted.config:
            raise RunConflict(
                f"Run {wanted.run} was created with another configuration: use a new Idempotency-Key for a new run."
            )
        return await self.models.runs.latest(wanted.run)

    async def _publish(self, data: EventData, record: RunRecord, *, nonce: int = 0) -> None:
        """Publish an event of the run. A failure is only logged: the reconciler finds the run without it."""
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
