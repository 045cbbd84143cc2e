"""`python -m services.exporter`: turns recorded segments into pictures, JSON lines and video."""

from services.exporter.settings import ExporterSettings
from shared.runtime.main import run_service
from shared.runtime.service import Service, ServicePorts


async def build(settings: ExporterSettings, ports: ServicePorts) -> Service:
    """Import late: the emulator loads only after the settings are validated."""
    from services.exporter.wiring import wire

    return await wire(settings, ports)


if __name__ == "__main__":
    raise SystemExit(run_service("exporter", ExporterSettings, build))
