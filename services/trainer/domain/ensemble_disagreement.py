"""How far the reward model's members disagree over a segment: where a judge's word would teach it most."""

from typing import Final

from shared.rewardnet import Floats, RewardNet

EVERY: Final = 10  # steps: neighbouring states differ little, and this runs beside the game


class EnsembleDisagreement:
    """The mean standard deviation of the members over a segment's observations, (n, 128) float32."""

    def __init__(self, net: RewardNet) -> None:
        self._net = net

    def __call__(self, observations: Floats) -> float:
        """The segment's doubt; 0 where all members say the same."""
        return float(self._net.forward(observations[::EVERY]).std(axis=0).mean())
