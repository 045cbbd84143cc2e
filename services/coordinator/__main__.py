"""`python -m services.coordinator`: owns runs and serves the REST interface and the live page."""

from services.coordinator.settings import Settings
from shared.runtime.main import run_service
from shared.runtime.service import Service, ServicePorts


async def build(settings: Settings, ports: ServicePorts) -> Service:
    """Imported late: the web framework loads only after the settings are valid."""
    from services.coordinator.wiring import wire

    return await wire(settings, ports)


if __name__ == "__main__":
    raise SystemExit(run_service("coordinator", Settings, build))
