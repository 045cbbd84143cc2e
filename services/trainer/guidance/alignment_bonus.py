"""The reward for following a suggestion: paid once, capped at a share of the episode's return. Pure arithmetic."""

from dataclasses import dataclass


@dataclass(slots=True)
class AlignmentBonus:
    """What one episode was paid. After each payment, and after its end, the sum is at most `share` of the return.

    The return is that of the game's own rewards. It may fall after a payment, so the end takes back what is too much.
    """

    share: float
    paid: float = 0.0
    payments: int = 0

    def pay(self, bonus: float, episode_return: float) -> float:
        """Return what is paid now: the bonus, or what the cap leaves of it; nothing below a positive return."""
        allowed = max(0.0, min(bonus, self.share * episode_return - self.paid))
        self.paid += allowed
        self.payments += allowed > 0
        return allowed

    def settle(self, episode_return: float) -> float:
        """The episode ended with this return: what is taken back, 0 or negative."""
        excess = max(0.0, self.paid - self.share * max(0.0, episode_return))
        self.paid -= excess
        return -excess
