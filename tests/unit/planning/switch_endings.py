"""How the takeovers of a policy switch ended."""

from services.trainer.domain.policy_switch import PolicySwitch
from shared.contracts.driver import SUCCESSES


def successes(switch: PolicySwitch) -> int:
    """Takeovers that ended because nothing was left to do."""
    return sum(count for (_, ending), count in switch.endings.items() if ending in SUCCESSES)
