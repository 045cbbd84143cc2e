"""Disagreement of the reward model's members over a segment: a judge's score helps most where it is large."""

from typing import Final, Self

from shared.rewardnet import Floats, RewardNet, view_of

EVERY: Final = 10  # steps: neighbouring states differ little, and this runs while the game waits


class EnsembleDisagreement:
    """Mean standard deviation of the members' scores over a segment's states."""

    def __init__(self, net: RewardNet) -> None:
        self._net = net

    @classmethod
    def from_bytes(cls, weights: bytes) -> Self:
        """Load a reward model's file; ContractError if it is damaged."""
        return cls(RewardNet.from_bytes(weights, view_of(weights)))

    @property
    def view(self) -> str:
        """What the members see, one of `rewardnet.WIDTHS`."""
        return self._net.weights.observation

    def __call__(self, observations: Floats) -> float:
        """The disagreement over `observations` (N, D) float32; 0 where all members agree."""
        return float(self._net.forward(observations[::EVERY]).std(axis=0).mean())
