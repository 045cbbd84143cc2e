"""`python -m services.rewardmodel`: turns the judges' scores into a reward model."""

from services.rewardmodel.settings import RewardModelSettings
from shared.runtime.main import run_service
from shared.runtime.service import Service, ServicePorts


async def build(settings: RewardModelSettings, ports: ServicePorts) -> Service:
    """Import late: heavy modules load only after the settings are validated."""
    from services.rewardmodel.wiring import wire

    return await wire(settings, ports)


if __name__ == "__main__":
    raise SystemExit(run_service("rewardmodel", RewardModelSettings, build))
