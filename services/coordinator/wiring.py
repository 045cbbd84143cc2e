"""Puts the coordinator together from settings and ports."""

import secrets
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from services.coordinator.api.app import create_app
from services.coordinator.api.run_defaults import RunDefaults
from services.coordinator.api.run_service import RunService
from services.coordinator.api.tokens import TokenFile
from services.coordinator.domain.decisions import Timeouts
from services.coordinator.handlers import Handlers
from services.coordinator.live.broadcaster import EventBroadcaster
from services.coordinator.live.event_source import RunEventSource
from services.coordinator.readmodels.read_models import ReadModels
from services.coordinator.readmodels.service_logs import ServiceLogs
from services.coordinator.reconcile.finished_run_updater import FinishedRunUpdater
from services.coordinator.reconcile.reconciler import Reconciler
from services.coordinator.reconcile.report_writer import ReportWriter
from services.coordinator.reconcile.run_state_machine import RunStateMachine
from services.coordinator.settings import CoordinatorSettings, Settings
from shared.bus.consumer import Consumer
from shared.bus.port import Bus
from shared.bus.topology import COORDINATOR_RUNS
from shared.runtime.service import Service, ServicePorts
from shared.state.deleted_runs import ignore_deleted_runs
from shared.state.lease import Lease
from shared.store.port import Store

LEASE = "coordinator"
Clock = Callable[[], datetime]
Fence = Callable[[], int | None]


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


async def wire(settings: Settings, ports: ServicePorts) -> Service:
    """The service: one consumer, three background jobs, and the REST interface."""
    config, bus, store = settings.coordinator, ports.bus, ports.store
    lease = Lease(store, LEASE, f"{socket.gethostname()}-{secrets.token_hex(4)}", config.lease_s)
    models = ReadModels(store, utc_now, timedelta(seconds=config.listing_s))
    reports = ReportWriter(store, models, utc_now)
    reconciler = make_reconciler(bus, store, models, reports, lambda: lease.fence, utc_now, config)
    updater = FinishedRunUpdater(models, reports, lambda: lease.fence, utc_now)
    app = create_app(
        RunService(bus, store, models, utc_now, RunDefaults(config.run_defaults, config.max_env_runners, config.games)),
        models,
        EventBroadcaster(RunEventSource(models).poller),
        TokenFile(config.tokens_file),
        requests_per_s=config.requests_per_s,
        burst=config.burst,
        logs=ServiceLogs(config.logs_dir) if config.logs_dir else None,
    )
    # A coordinator without the lease leaves events to the leader.
    consumer = Consumer(
        COORDINATOR_RUNS,
        ignore_deleted_runs(store, Handlers(reconciler).handle),
        active=lambda: lease.fence is not None,
    )
    return Service(
        consumers=[consumer], background=[lease.run, reconciler.run, updater.run], app=app, drain=lease.release
    )


def make_reconciler(
    bus: Bus,
    store: Store,
    models: ReadModels,
    reports: ReportWriter,
    fence: Fence,
    now: Clock,
    settings: CoordinatorSettings,
) -> Reconciler:
    """The reconciler and its state machine, over the read models that the API uses."""
    timeouts = Timeouts(silence=timedelta(seconds=settings.silence_s), stop=timedelta(seconds=settings.stop_s))
    return Reconciler(
        bus=bus,
        models=models,
        reports=reports,
        state_machine=RunStateMachine(store, models, timeouts, now),
        fence=fence,
        now=now,
        quiet=timedelta(seconds=settings.quiet_s),
        interval_s=settings.interval_s,
    )
