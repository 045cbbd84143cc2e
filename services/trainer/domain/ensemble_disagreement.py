"""Disagreement of the reward model's members over a segment: a judge's score helps most where it is large."""

from typing import Final

from shared.rewardnet import Floats, RewardNet

EVERY: Final = 10  # steps: neighbouring states differ little, and this runs while the game waits


class EnsembleDisagreement:
    """Mean standard deviation of the members' scores over a segment's observations."""

    def __init__(self, net: RewardNet) -> None:
        self._net = net

    def __call__(self, observations: Floats) -> float:
        """The disagreement over `observations` (N, 128) float32; 0 where all members agree."""
        return float(self._net.forward(observations[::EVERY]).std(axis=0).mean())
