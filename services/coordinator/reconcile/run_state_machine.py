"""Takes one step of a run: reads its view, asks the domain for a decision, commits ONE object, returns its events.

It is the only writer of start orders. A step is safe to repeat, late or by two coordinators at the same time: the
commit object is created only if absent, and each revision of a record can be written only once.
"""

from collections.abc import Callable
from datetime import datetime

import structlog

from services.coordinator.domain.decisions import ChangeState, Decision, StartEpoch, Timeouts, Wait, decide
from services.coordinator.domain.events import rm_ready, run_changed
from services.coordinator.domain.lifecycle import advance
from services.coordinator.domain.run_view import Committed, EpochView, RunView
from services.coordinator.readmodels.imitation import read_imitation
from services.coordinator.readmodels.read_models import ReadModels
from services.coordinator.reconcile.silence_timer import SilenceTimer
from shared.contracts.epoch import EpochStart
from shared.contracts.events import EventData
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.errors import ContractError
from shared.store import keys
from shared.store.create import create_or_read
from shared.store.port import AlreadyExists, Store

log = structlog.get_logger(__name__)


class RunStateMachine:
    """Moves runs from state to state and from epoch to epoch. `now` is injected, so that a test owns the time."""

    def __init__(self, store: Store, models: ReadModels, timeouts: Timeouts, now: Callable[[], datetime]) -> None:
        self._store, self._models, self._timeouts, self._now = store, models, timeouts, now
        self._silence_timers: dict[RunId, SilenceTimer] = {}

    async def step(
        self, run: RunId, fence: int, held: Callable[[], int | None]
    ) -> tuple[RunView, Decision, list[EventData]]:
        """One step of one run: the view, the decision, and the events to publish. `held` is the fence held now."""
        record = await self._models.runs.latest(run)
        view = await self._view(record)
        if held() != fence:  # it slept: what it read may follow from the decisions of a newer coordinator
            return view, Wait("Another coordinator decides."), []
        if record.external:  # a late event can name it, if a coordinator trained its first epochs
            return view, Wait("`zelda epoch` trains the run."), []
        now = self._now()
        timer = self._silence_timers.setdefault(run, SilenceTimer())
        silence = timer.observe((record.revision, view.last_heartbeat), now)
        decision = decide(view, now, self._timeouts, silence)
        events: list[EventData] = []
        if isinstance(decision, StartEpoch):
            events = await self._start_epoch(view, decision, fence)
        elif isinstance(decision, ChangeState):
            events = await self._change_state(record, decision, fence)
        elif view.current is not None and is_behind(record, view.current.epoch):
            # A coordinator ended between the start order and the record: write the record now.
            events = await self._change_state(record, ChangeState("running", epoch=view.current.epoch), fence)
        return view, decision, events

    def forget(self, run: RunId) -> None:
        """Free the memory of a run that has ended."""
        self._silence_timers.pop(run, None)

    async def _view(self, record: RunRecord) -> RunView:
        """The view of the run. A stopping run ends in time even if its documents cannot be read."""
        try:
            return await self._models.views.read(record)
        except ContractError:
            if record.state != "stopping" or self._now() - record.updated <= self._timeouts.stop:
                raise
            return RunView(record)

    async def _start_epoch(self, view: RunView, decision: StartEpoch, fence: int) -> list[EventData]:
        order = EpochStart(
            run=view.record.run,
            epoch=decision.epoch,
            fence=fence,
            config=view.record.config,
            reward_model=decision.reward_model,
            archive=view.archive_before(decision.epoch),
            demonstrations=view.demonstrations_before(decision.epoch),
            imitation=await read_imitation(self._models.scores, view),
            starts=await self._models.states.named(view.record.config.starts),
            created=self._now(),
        )
        key = keys.epoch_start(order.run, order.epoch)
        committed = await create_or_read(self._store, key, order.to_bytes())
        if not committed.created:
            log.info("epoch already ordered by another coordinator", run=order.run, epoch=order.epoch)
            return []
        model = decision.reward_model.weights_digest if decision.reward_model else None
        log.info("epoch ordered", run=order.run, epoch=order.epoch, fence=fence, reward_model=model, key=key)
        changed = await self._change_state(view.record, ChangeState("running", epoch=order.epoch), fence)
        return [rm_ready(EpochView(order.epoch, Committed(key, committed.digest, order))), *changed]

    async def _change_state(self, record: RunRecord, decision: ChangeState, fence: int) -> list[EventData]:
        revision = advance(
            record, decision.state, self._now(), fence=fence, reason=decision.reason, epoch=decision.epoch
        )
        try:
            await self._models.runs.append(revision)
        except AlreadyExists:
            log.info("run already changed by another writer", run=record.run, revision=revision.revision)
            return []
        log.info("run changed", run=record.run, state=revision.state, epoch=revision.epoch, reason=revision.reason)
        return [run_changed(revision)]


def is_behind(record: RunRecord, epoch: int) -> bool:
    """Whether the record does not yet contain the order of `epoch`."""
    return record.state == "created" or (record.state == "running" and record.epoch != epoch)


def describe(decision: Decision) -> str:
    """The decision as a sentence for users."""
    if isinstance(decision, Wait):
        return decision.reason
    if isinstance(decision, StartEpoch):
        return f"Epoch {decision.epoch} starts."
    return f"The run is {decision.state}."
