"""Starts the judge service: `python -m services.judge`."""

from services.judge.settings import JudgeSettings
from shared.runtime.main import run_service
from shared.runtime.service import Service, ServicePorts


async def build(settings: JudgeSettings, ports: ServicePorts) -> Service:
    """Wire the service. Heavy modules are imported here, after the settings are validated."""
    from services.judge.wiring import wire

    return await wire(settings, ports)


if __name__ == "__main__":
    raise SystemExit(run_service("judge", JudgeSettings, build))
