"""`python -m services.coordinator`: owns runs and serves the REST interface and the live page."""

from services.coordinator.settings import Settings
from shared.runtime.service import Ports, Service, run_service


async def build(settings: Settings, ports: Ports) -> Service:
    """Imported late: the web framework loads only after the settings are valid."""
    from services.coordinator.wiring import wire

    return await wire(settings, ports)


if __name__ == "__main__":
    raise SystemExit(run_service("coordinator", Settings, build))
