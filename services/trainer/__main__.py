"""The trainer service: keeps a driver at work on every active run and announces what the drivers store."""

from services.trainer.settings import TrainerSettings
from shared.runtime.service import Ports, Service, run_service


async def build(settings: TrainerSettings, ports: Ports) -> Service:
    """Imported late: nothing heavy is loaded before the settings are known to be right."""
    from services.trainer.wiring import wire

    return await wire(settings, ports)


if __name__ == "__main__":
    raise SystemExit(run_service("trainer", TrainerSettings, build))
