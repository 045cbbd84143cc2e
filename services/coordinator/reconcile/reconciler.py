"""The reconciler: while it holds the lease, it moves every active run on, republishes lost events and writes reports.

It needs no event: the next pass does everything that an event triggers. So a lost event costs seconds; one that names a
run which this leader does not know as active costs up to the time between two listings (`readmodels/known_runs.py`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from weakref import WeakValueDictionary

import structlog

from services.coordinator.domain.decisions import Wait
from services.coordinator.domain.events import SOURCE
from services.coordinator.domain.lifecycle import ACTIVE
from services.coordinator.domain.replay import judging_to_republish, orders_to_republish
from services.coordinator.domain.run_view import RunView
from services.coordinator.readmodels.read_models import ReadModels
from services.coordinator.reconcile import epoch_metrics
from services.coordinator.reconcile.replay_backoff import ReplayBackoff
from services.coordinator.reconcile.report_writer import ReportWriter
from services.coordinator.reconcile.run_state_machine import RunStateMachine, describe
from shared.bus.port import Bus
from shared.contracts.envelope import wrap
from shared.contracts.events import EventData
from shared.contracts.ids import RunId
from shared.errors import Fatal, Transient, ZeldaError
from shared.telemetry import metrics
from shared.telemetry.log_once import LogOnce

MAX_REPUBLISHED: Final = 500
"""Events of one run in one pass: a long backlog takes several passes, so that it does not flood the bus."""

REPUBLISHED: Final = metrics.counter(
    "coordinator_republished_total", "events published again, because no successor followed"
)
FAILURES: Final = metrics.counter("coordinator_failed_passes_total", "passes in which a run could not be reconciled")
ACTIVE_RUNS: Final = metrics.gauge("coordinator_active_runs", "runs that are created, running or stopping")
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Reconciler:
    """Reconciles all active runs. `fence` returns the lease's revision while this coordinator holds it, else None."""

    bus: Bus
    models: ReadModels
    reports: ReportWriter
    state_machine: RunStateMachine
    fence: Callable[[], int | None]
    now: Callable[[], datetime]
    quiet: timedelta
    interval_s: float
    _backoffs: dict[RunId, tuple[ReplayBackoff, ReplayBackoff]] = field(default_factory=dict)
    _locks: WeakValueDictionary[RunId, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _problems: LogOnce[RunId] = field(default_factory=lambda: LogOnce(log.warning, "run not reconciled"))

    async def run(self) -> None:
        """Reconcile all runs every `interval_s`; never returns."""
        while True:
            try:
                await self.reconcile_all()
            except Transient as error:  # the list itself failed; the next pass retries
                FAILURES.inc()
                log.warning("runs not listed", error=str(error))
            await asyncio.sleep(self.interval_s)

    async def reconcile_all(self) -> None:
        """Reconcile every known active run once, with the lease. A failing run is logged; other runs proceed."""
        fence = self.fence()
        if fence is None:
            self.models.known.clear()  # commands of this process would add runs without end
            return
        await self.models.known.refresh(fence, self.now())
        active = self.models.known.active()
        ACTIVE_RUNS.set(len(active))
        epoch_metrics.keep_only({record.run for record in active}, self.now())
        for record in active:
            try:
                await self.reconcile(record.run)
                self._problems.clear(record.run)
            except Fatal:
                raise
            except Exception as error:  # any error: one run must not stop those after it
                FAILURES.inc()
                expected = isinstance(error, ZeldaError)
                self._problems.report(record.run, error, run=record.run, exc_info=not expected)

    async def reconcile(self, run: RunId) -> None:
        """Take the next step of one run, publish its events and write its reports."""
        async with self._locks.setdefault(run, asyncio.Lock()):
            fence = self.fence()
            if fence is None:
                return
            view, decision, events = await self.state_machine.step(run, fence, self.fence)
            self.models.known.observe(view.record)
            for event in events:
                await self.bus.publish(wrap(event, source=SOURCE, fence=fence, time=self.now()))
            if view.record.external or (isinstance(decision, Wait) and self.fence() != fence):
                return
            if isinstance(decision, Wait):
                await self._republish(view, fence)
            else:
                view = await self.models.views.read(await self.models.runs.latest(run))
                self.models.known.observe(view.record)
            await self.reports.write(view, describe(decision))
            if view.record.state not in ACTIVE:
                self._forget(run)

    async def _republish(self, view: RunView, fence: int) -> None:
        """Publish the events of commit objects without a successor, unless the run has made progress since."""
        now = self.now()
        for data in (await self._due(view, now))[:MAX_REPUBLISHED]:
            REPUBLISHED.inc()
            log.info("event republished", run=data.run, epoch=data.epoch, type=data.TYPE, key=data.key)
            event = wrap(data, source=SOURCE, fence=fence, time=now)
            await self.bus.publish(event, replay_nonce=int(now.timestamp() * 1000))

    async def _due(self, view: RunView, now: datetime) -> list[EventData]:
        """The events to republish now. Orders and judging have separate backoffs: both can stall alone."""
        run, judged = view.record.run, set[str]()
        for epoch in view.epochs[-2:]:
            judged |= set((await self.models.scores.count(run, epoch.epoch)).outcomes)
        orders, judging = self._backoffs.setdefault(run, (ReplayBackoff(self.quiet), ReplayBackoff(self.quiet)))
        events: list[EventData] = []
        if orders.due((progress_marker(view), view.last_heartbeat), now):
            events += orders_to_republish(view, now, self.quiet)
        if judging.due(len(judged), now, stage=progress_marker(view)):
            events += judging_to_republish(view, judged)
        return events

    def _forget(self, run: RunId) -> None:
        self._backoffs.pop(run, None)
        self.state_machine.forget(run)
        self.models.forget(run)
        self.reports.forget(run)


def progress_marker(view: RunView) -> tuple[object, ...]:
    """A value that changes with every step of the run."""
    current = view.current
    return (view.record.revision, len(view.epochs), current and current.finished is not None)
