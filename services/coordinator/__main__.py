"""Runs the coordinator: `python -m services.coordinator`. Heavy modules load once the settings are right."""

import sys

from services.coordinator.settings import Settings
from shared.runtime.service import Ports, Service, run_service


async def _build(settings: Settings, ports: Ports) -> Service:
    from services.coordinator.build import build

    return await build(settings, ports)


if __name__ == "__main__":
    sys.exit(run_service("coordinator", Settings, _build))
