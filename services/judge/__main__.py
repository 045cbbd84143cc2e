"""The judge service: turns recorded segments into scores."""

from services.judge.settings import JudgeSettings
from shared.runtime.main import run_service
from shared.runtime.service import Service, ServicePorts


async def build(settings: JudgeSettings, ports: ServicePorts) -> Service:
    """Imported late: nothing heavy is loaded before the settings are known to be right."""
    from services.judge.wiring import wire

    return await wire(settings, ports)


if __name__ == "__main__":
    raise SystemExit(run_service("judge", JudgeSettings, build))
