"""The reward model service: turns scores into a model of what the judges like."""

from services.rewardmodel.settings import RewardModelSettings
from shared.runtime.service import Ports, Service, run_service


async def build(settings: RewardModelSettings, ports: Ports) -> Service:
    """Imported late: nothing heavy is loaded before the settings are known to be right."""
    from services.rewardmodel.wiring import wire

    return await wire(settings, ports)


if __name__ == "__main__":
    raise SystemExit(run_service("rewardmodel", RewardModelSettings, build))
