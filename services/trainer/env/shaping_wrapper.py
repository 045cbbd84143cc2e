"""Wraps a Shaper for the vector environment: forwards its rewards and sums them per episode as one reward term."""

import numpy as np
from numpy.typing import NDArray

from services.trainer.domain.shaping import ConservativePotential, Shaper
from shared.contracts.learning.reward_learning import ShapingConfig
from shared.rewardnet import view_of


class ShapingWrapper:
    """Implements `vector.Rewarder` for N environments and one reward model per epoch."""

    def __init__(self, envs: int, config: ShapingConfig, discount: float, weights: bytes) -> None:
        """`weights` is a reward model's file; ContractError if it is damaged."""
        self.view = view_of(weights)
        potential = ConservativePotential.from_bytes(weights, self.view, config.conservatism)
        self._shaper = Shaper(envs, config, discount, potential)
        self._sums = np.zeros(envs)

    def begin(self, observations: NDArray[np.float32]) -> None:
        """Begin an episode in every environment, at `observations` (N, D)."""
        self._sums[:] = 0.0
        self._shaper.begin(observations)

    def advance(
        self,
        observations: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        held: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """Return what to add to the rewards, (N,): nothing to a held environment, whose state is the same."""
        extra = self._shaper.advance(observations, terminated, truncated)
        extra[held] = 0.0
        self._sums += extra
        return extra

    def pop(self, env: int) -> float:
        """Return the sum of the episode that ended in `env`, and begin the next one."""
        total = float(self._sums[env])
        self._sums[env] = 0.0
        return total
