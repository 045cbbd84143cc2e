"""The trainer service: keeps one driver at work on every active run and announces what the drivers store."""

from services.trainer.settings import TrainerSettings
from shared.runtime.main import run_service
from shared.runtime.service import Service, ServicePorts


async def build(settings: TrainerSettings, ports: ServicePorts) -> Service:
    """Build the service. The late import keeps a refusal of wrong settings fast."""
    from services.trainer.wiring import wire

    return await wire(settings, ports)


if __name__ == "__main__":
    raise SystemExit(run_service("trainer", TrainerSettings, build))
