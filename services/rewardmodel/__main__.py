"""The reward model service: turns scores into a model of what the judges like."""

from services.rewardmodel.settings import RewardModelSettings
from shared.runtime.main import run_service
from shared.runtime.service import Service, ServicePorts


async def build(settings: RewardModelSettings, ports: ServicePorts) -> Service:
    """Imported late: nothing heavy is loaded before the settings are known to be right."""
    from services.rewardmodel.wiring import wire

    return await wire(settings, ports)


if __name__ == "__main__":
    raise SystemExit(run_service("rewardmodel", RewardModelSettings, build))
