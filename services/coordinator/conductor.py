"""Performs decisions: looks at a run, asks the domain what is next, commits ONE object, announces it.

It is the only writer of start orders. Safe to call twice, late or by two coordinators at once: the commit object is
created only if absent, and the next revision of a record can be written only once.
"""

from collections.abc import Callable
from datetime import datetime

import structlog

from services.coordinator.adapters.views import Views
from services.coordinator.domain.decisions import Decision, Enter, Limits, StartEpoch, Wait, decide
from services.coordinator.domain.lifecycle import advance
from services.coordinator.domain.rings import start_order, state
from services.coordinator.domain.view import Committed, EpochView, RunView
from services.coordinator.domain.vigil import Vigil
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.epoch import EpochStart
from shared.contracts.events import EventData
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.errors import ContractError
from shared.state.runs import Runs
from shared.store import keys
from shared.store.port import AlreadyExists, Store

SOURCE = "coordinator"
log = structlog.get_logger(__name__)


class Conductor:
    """Moves runs forward. `now` is injected, so that a test owns the time."""

    def __init__(self, store: Store, runs: Runs, views: Views, limits: Limits, now: Callable[[], datetime]) -> None:
        self._store, self._runs, self._views, self._limits, self._now = store, runs, views, limits, now
        self._vigils: dict[RunId, Vigil] = {}

    async def step(self, run: RunId, fence: int) -> tuple[RunView, Decision, list[Envelope]]:
        """One decision for one run: what was seen, what was decided, and the events to publish."""
        record = await self._runs.latest(run)
        view = await self._view(record)
        now = self._now()
        silent = self._vigils.setdefault(run, Vigil()).look((record.revision, view.last_sign), now)
        decision = decide(view, now, self._limits, silent)
        events: list[EventData] = []
        if isinstance(decision, StartEpoch):
            events = await self._start(view, decision, fence)
        elif isinstance(decision, Enter):
            events = await self._enter(record, decision, fence)
        elif view.current is not None and behind(record, view.current.epoch):
            # The process that gave the start order died before it wrote the record: write it now.
            events = await self._enter(record, Enter("running", epoch=view.current.epoch), fence)
        return view, decision, [wrap(data, source=SOURCE, fence=fence, time=self._now()) for data in events]

    async def _view(self, record: RunRecord) -> RunView:
        """What is known of the run. One that a person stopped ends in time, even if its documents cannot be read."""
        try:
            return await self._views.read(record)
        except ContractError:
            if record.state != "stopping" or self._now() - record.updated <= self._limits.stop:
                raise
            return RunView(record)

    def forget(self, run: RunId) -> None:
        """Free what is remembered about a run that has ended."""
        self._vigils.pop(run, None)

    async def _start(self, view: RunView, decision: StartEpoch, fence: int) -> list[EventData]:
        order = EpochStart(
            run=view.record.run,
            epoch=decision.epoch,
            fence=fence,
            config=view.record.config,
            reward_model=decision.reward_model,
            created=self._now(),
        )
        key = keys.epoch_start(order.run, order.epoch)
        try:
            digest = await self._store.create(key, order.to_bytes())
        except AlreadyExists:
            log.info("epoch was ordered by another coordinator", run=order.run, epoch=order.epoch)
            return []
        log.info("epoch ordered", run=order.run, epoch=order.epoch, fence=fence, reward_model=_name(decision), key=key)
        entered = await self._enter(view.record, Enter("running", epoch=order.epoch), fence)
        return [start_order(EpochView(order.epoch, Committed(key, digest, order))), *entered]

    async def _enter(self, record: RunRecord, decision: Enter, fence: int) -> list[EventData]:
        following = advance(
            record, decision.state, self._now(), fence=fence, reason=decision.reason, epoch=decision.epoch
        )
        try:
            await self._runs.append(following)
        except AlreadyExists:
            log.info("run record was changed by somebody else", run=record.run, revision=following.revision)
            return []
        log.info("run changed", run=record.run, state=following.state, epoch=following.epoch, reason=following.reason)
        return [state(following)]


def behind(record: RunRecord, epoch: int) -> bool:
    """Whether the record does not say yet that `epoch` was ordered."""
    return record.state == "created" or (record.state == "running" and record.epoch != epoch)


def _name(decision: StartEpoch) -> str | None:
    return decision.reward_model.weights_digest if decision.reward_model else None


def doing(decision: Decision) -> str:
    """A decision in words, for people who watch."""
    if isinstance(decision, Wait):
        return decision.reason
    if isinstance(decision, StartEpoch):
        return f"Epoch {decision.epoch} starts."
    return f"The run is {decision.state}."
