"""The coordinator's round: while it holds the lease it looks at every active run, moves it on, rings again, reports.

Everything that an event would trigger also happens here, a little later; that is why a lost event costs only time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog

from services.coordinator.adapters.tallies import Tallies
from services.coordinator.adapters.views import Views
from services.coordinator.conductor import SOURCE, Conductor, doing
from services.coordinator.domain.decisions import Wait
from services.coordinator.domain.lifecycle import ACTIVE
from services.coordinator.domain.pace import Pace
from services.coordinator.domain.rings import unheard_orders, unjudged_epochs
from services.coordinator.domain.view import RunView
from services.coordinator.reporter import Reporter
from shared.bus.port import Bus
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import EventData
from shared.contracts.ids import RunId
from shared.errors import Permanent, Transient
from shared.runtime import metrics
from shared.state.runs import Runs

MOST_RINGS: Final = 500  # in one round: a long backlog is rung in several, so that the bus is not flooded
RINGS: Final = metrics.counter("coordinator_rings_total", "events published again, because no successor followed")
TROUBLE: Final = metrics.counter("coordinator_trouble_total", "rounds in which a run could not be looked at")
ACTIVE_RUNS: Final = metrics.gauge("coordinator_active_runs", "runs that are created, running or stopping")
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Patrol:
    """One coordinator's rounds. `fence` gives the lease's revision while it is held, else None."""

    bus: Bus
    runs: Runs
    views: Views
    tallies: Tallies
    reporter: Reporter
    conductor: Conductor
    fence: Callable[[], int | None]
    now: Callable[[], datetime]
    quiet: timedelta
    interval_s: float
    _paces: dict[RunId, tuple[Pace, Pace]] = field(default_factory=dict)
    _locks: dict[RunId, asyncio.Lock] = field(default_factory=dict)
    _trouble: dict[RunId, str] = field(default_factory=dict)

    async def walk(self) -> None:
        """Rounds without end."""
        while True:
            if self.fence() is not None:
                try:
                    await self.round()
                except Transient as error:  # of the list itself: the next round is soon
                    TROUBLE.inc()
                    log.warning("runs could not be listed", error=str(error))
            await asyncio.sleep(self.interval_s)

    async def round(self) -> None:
        """Look once at every active run. Trouble with one run is told and does not keep the others waiting."""
        active = [record for record in await self.runs.all() if record.state in ACTIVE]
        ACTIVE_RUNS.set(len(active))
        for record in active:
            try:
                await self.visit(record.run)
                self._trouble.pop(record.run, None)
            except (Transient, Permanent) as error:
                TROUBLE.inc()
                self._tell(record.run, str(error))

    def _tell(self, run: RunId, problem: str) -> None:
        """Once for each problem: rounds are made every other second."""
        if self._trouble.get(run) != problem:
            log.warning("run could not be looked at", run=run, error=problem)
            self._trouble[run] = problem

    async def visit(self, run: RunId) -> None:
        """Move one run as far as it goes now, and publish what that brings."""
        async with self._locks.setdefault(run, asyncio.Lock()):
            fence = self.fence()
            if fence is None:
                return
            view, decision, events = await self.conductor.step(run, fence)
            for event in events:
                await self.bus.publish(event)
            if isinstance(decision, Wait):
                await self._ring(view, fence)
            else:
                view = await self.views.read(await self.runs.latest(run))
            await self.reporter.report(view, doing(decision))
            if view.record.state not in ACTIVE:
                self._forget(run)

    async def _ring(self, view: RunView, fence: int) -> None:
        """Announce commit objects without a successor again, unless the run got on since the last time."""
        now = self.now()
        for data in (await self._due(view, now))[:MOST_RINGS]:
            RINGS.inc()
            log.info("rung again", run=data.run, epoch=data.epoch, type=data.TYPE, key=data.key)
            event = wrap(data, source=SOURCE, fence=fence, time=now)
            await self.bus.publish(event, ring=int(now.timestamp() * 1000))

    async def _due(self, view: RunView, now: datetime) -> list[EventData]:
        """What to announce now. That judges get on says nothing of a trainer, so there are two paces."""
        run, judged = view.record.run, set[str]()
        for epoch in view.epochs[-2:]:
            judged |= set((await self.tallies.of(run, epoch.epoch)).outcomes)
        orders, judging = self._paces.setdefault(run, (Pace(self.quiet), Pace(self.quiet)))
        due = unheard_orders(view, now, self.quiet) if orders.due((mark(view), view.last_sign), now) else []
        return due + (unjudged_epochs(view, judged) if judging.due((mark(view), len(judged)), now) else [])

    def _forget(self, run: RunId) -> None:
        self._paces.pop(run, None)
        self.conductor.forget(run)
        self.views.forget(run)
        self.reporter.forget(run)

    def handler(self) -> Callable[[Envelope], Awaitable[list[Envelope]]]:
        """For the bus: an event about a run is a reason to look at it now, and nothing else."""

        async def heard(event: Envelope) -> list[Envelope]:
            await self.visit(event.runid)
            return []

        return heard


def mark(view: RunView) -> tuple[object, ...]:
    """What changes whenever a run gets on: while it does, nothing is lost."""
    current = view.current
    return (view.record.revision, len(view.epochs), current and current.finished is not None)
