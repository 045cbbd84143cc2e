"""The trainer service: keeps a driver at work on every active run and announces what the drivers store."""

from services.trainer.settings import TrainerSettings
from shared.runtime.main import run_service
from shared.runtime.service import Service, ServicePorts


async def build(settings: TrainerSettings, ports: ServicePorts) -> Service:
    """Imported late: nothing heavy is loaded before the settings are known to be right."""
    from services.trainer.wiring import wire

    return await wire(settings, ports)


if __name__ == "__main__":
    raise SystemExit(run_service("trainer", TrainerSettings, build))
