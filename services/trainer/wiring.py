"""Puts the trainer service together: fleet, announcer, handlers, and the two loops that drive them."""

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

TICK_S = 0.5  # between two looks at the drivers; an epoch starts this much later at worst
DRAIN_S = 70.0  # a driver finishes its iteration and writes a checkpoint


async def wire(settings: TrainerSettings, ports: ServicePorts) -> Service:
    """Build the service."""
    backend = make_backend(settings)
    fleet = DriverSupervisor(ports.store, backend, settings.trainer.attempts, time.monotonic)
    announcer = Announcer(ports.store, ports.bus)
    handlers = Handlers(ports.store, fleet)

    async def watch() -> None:
        await fleet.recover()
        while not ports.stopping.is_set():
            await fleet.tick()
            await asyncio.sleep(TICK_S)

    async def announce() -> None:
        while True:
            await announcer.follow_all({run: member.fence for run, member in fleet.members.items()})
            await asyncio.sleep(settings.trainer.announce_s)

    return Service(
        consumers=[Consumer(TRAINER_RUNS, handlers.run_event)],
        background=[watch, announce],
        drain=backend.close,
        drain_s=DRAIN_S,
    )


def make_backend(settings: TrainerSettings) -> Backend:
    """The backend that the settings name."""
    if settings.trainer.backend == "local":
        return LocalBackend()
    if settings.trainer.ray_address is None:
        raise AssertionError("the settings let no ray_jobs through without an address")
    token_file = settings.trainer.ray_token_file
    return RayJobsBackend(settings.trainer.ray_address, token=_token(token_file) if token_file else None)


def _token(file: Path) -> str:
    try:
        return read_token(file)
    except ValueError as error:
        raise Fatal(f"ZELDA_TRAINER__RAY_TOKEN_FILE: {error}") from error
