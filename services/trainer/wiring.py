"""Builds the trainer service: supervisor, announcer, handlers, and the two loops that drive them."""

import asyncio
import time
from pathlib import Path

from services.trainer.announcer import Announcer
from services.trainer.handlers import Handlers
from services.trainer.settings import TrainerSettings
from services.trainer.supervisor.backends.local import LocalBackend
from services.trainer.supervisor.backends.port import Backend
from services.trainer.supervisor.backends.ray_jobs import RayJobsBackend
from services.trainer.supervisor.driver_supervisor import DriverSupervisor
from shared.bus.consumer import Consumer
from shared.bus.topology import TRAINER_RUNS
from shared.config.settings import read_token
from shared.errors import Fatal
from shared.runtime.service import Service, ServicePorts
from shared.state.deleted_runs import ignore_deleted_runs

TICK_S = 0.5  # between two checks of the drivers; an epoch starts up to this much later
DRAIN_S = 70.0  # a driver finishes its iteration and writes a checkpoint
KILL_S = 10.0  # of the drain: to end a driver that is too slow


async def wire(settings: TrainerSettings, ports: ServicePorts) -> Service:
    """Build the service."""
    backend = make_backend(settings)
    supervisor = DriverSupervisor(
        ports.store, backend, settings.trainer.attempts, time.monotonic, settings.trainer.max_drivers
    )
    announcer = Announcer(ports.store, ports.bus)
    handlers = Handlers(ports.store, supervisor)

    async def supervise() -> None:
        await supervisor.recover()
        while not ports.stopping.is_set():
            await supervisor.tick()
            await asyncio.sleep(TICK_S)

    async def announce() -> None:
        while True:
            await announcer.follow_all({run: supervised.fence for run, supervised in supervisor.runs.items()})
            await asyncio.sleep(settings.trainer.announce_s)

    return Service(
        consumers=[Consumer(TRAINER_RUNS, ignore_deleted_runs(ports.store, handlers.run_event))],
        background=[supervise, announce],
        drain=backend.close,
        drain_s=DRAIN_S,
    )


def make_backend(settings: TrainerSettings) -> Backend:
    """The backend that the settings name."""
    if settings.trainer.backend == "local":
        return LocalBackend(drain_s=max(1.0, (settings.shutdown.drain_s or DRAIN_S) - KILL_S))
    if settings.trainer.ray_address is None:
        raise AssertionError("TrainerGroup refuses ray_jobs without ray_address")
    token_file = settings.trainer.ray_token_file
    return RayJobsBackend(settings.trainer.ray_address, token=_token(token_file) if token_file else None)


def _token(file: Path) -> str:
    try:
        return read_token(file)
    except ValueError as error:
        raise Fatal(f"ZELDA_TRAINER__RAY_TOKEN_FILE: {error}") from error
