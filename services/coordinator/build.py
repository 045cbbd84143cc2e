"""Puts the coordinator together: the only place where its parts meet the real bus, store and clock."""

import secrets
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import structlog

from services.coordinator.adapters.feed import Feed
from services.coordinator.adapters.news import Newsroom
from services.coordinator.adapters.tallies import Tallies
from services.coordinator.adapters.views import Views
from services.coordinator.api.app import create_app
from services.coordinator.api.desk import Desk
from services.coordinator.conductor import Conductor
from services.coordinator.domain.decisions import Limits
from services.coordinator.epilogue import Epilogue
from services.coordinator.patrol import Patrol
from services.coordinator.reporter import Reporter
from services.coordinator.settings import CoordinatorSettings, Settings
from services.coordinator.tokens import Tokens
from shared.bus.consumer import Consumer
from shared.bus.port import Bus
from shared.bus.topology import COORDINATOR_RUNS
from shared.contracts.envelope import Envelope
from shared.errors import Transient
from shared.runtime.service import Ports, Service
from shared.state.lease import Lease
from shared.state.runs import Runs
from shared.store.port import Store

LEASE = "coordinator"
Clock = Callable[[], datetime]
log = structlog.get_logger(__name__)


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


async def build(settings: Settings, ports: Ports) -> Service:
    """The coordinator as the runtime runs it."""
    lease = Lease(ports.store, LEASE, f"{socket.gethostname()}-{secrets.token_hex(4)}", settings.coordinator.lease_s)
    desk = make_desk(ports.bus, ports.store, utc_now)
    patrol = make_patrol(desk, ports.bus, lambda: lease.fence, settings.coordinator)
    epilogue = Epilogue(desk.runs, desk.views, desk.reporter, lambda: lease.fence, desk.now)
    app = create_app(
        desk,
        Tokens(settings.coordinator.tokens_file),
        requests_per_s=settings.coordinator.requests_per_s,
        burst=settings.coordinator.burst,
    )
    return Service(
        # A coordinator without the lease leaves the events to the one that holds it.
        consumers=[Consumer(COORDINATOR_RUNS, patrol.handler(), active=lambda: lease.fence is not None)],
        background=[lease.run, patrol.walk, epilogue.walk],
        app=app,
        drain=lease.release,
    )


def make_desk(bus: Bus, store: Store, now: Clock) -> Desk:
    """What the API works with."""
    runs, views, tallies = Runs(store), Views(store), Tallies(store)
    reporter = Reporter(store, views, tallies, now)
    newsroom = Newsroom(store, runs, views, reporter)
    return Desk(
        store=store,
        runs=runs,
        views=views,
        tallies=tallies,
        reporter=reporter,
        feed=Feed(newsroom.look),
        announce=_announcer(bus),
        now=now,
    )


def make_patrol(desk: Desk, bus: Bus, fence: Callable[[], int | None], settings: CoordinatorSettings) -> Patrol:
    """The rounds over the same store that the API reads."""
    limits = Limits(silence=timedelta(seconds=settings.silence_s), stop=timedelta(seconds=settings.stop_s))
    return Patrol(
        bus=bus,
        runs=desk.runs,
        views=desk.views,
        tallies=desk.tallies,
        reporter=desk.reporter,
        conductor=Conductor(desk.store, desk.runs, desk.views, limits, desk.now),
        fence=fence,
        now=desk.now,
        quiet=timedelta(seconds=settings.quiet_s),
        interval_s=settings.interval_s,
    )


def _announcer(bus: Bus) -> Callable[[Envelope, int], Awaitable[None]]:
    async def announce(event: Envelope, ring: int) -> None:
        try:
            await bus.publish(event, ring=ring)
        except Transient as error:  # the record is written; the next round acts on it without any event
            log.warning("not announced", run=event.runid, type=event.type, error=str(error))

    return announce
