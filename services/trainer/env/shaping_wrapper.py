"""Shaping with an account: passes a shaper's rewards on and sums them per episode, as one more reward term."""

import numpy as np
from numpy.typing import NDArray

from services.trainer.domain.shaping import ConservativePotential, Shaper
from shared.contracts.run import ShapingConfig


class ShapingWrapper:
    """The vector environment's rewarder. N environments, one reward model for the whole epoch."""

    def __init__(
        self, envs: int, config: ShapingConfig, discount: float, weights: bytes, version: str, observation: str
    ) -> None:
        """`weights` is a reward model's file; ContractError if it does not fit `observation`."""
        potential = ConservativePotential.from_bytes(weights, observation, config.conservatism, version)
        self._shaper = Shaper(envs, config, discount, potential)
        self._sums = np.zeros(envs)

    def begin(self, observations: NDArray[np.float32]) -> None:
        """All environments were reset."""
        self._sums[:] = 0.0
        self._shaper.begin(observations)

    def advance(
        self, observations: NDArray[np.float32], terminated: NDArray[np.bool_], truncated: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """What to add to the rewards, (N,)."""
        extra = self._shaper.advance(observations, terminated, truncated)
        self._sums += extra
        return extra

    def take(self, env: int) -> float:
        """The sum over the episode that ended in `env`; the next one begins."""
        total = float(self._sums[env])
        self._sums[env] = 0.0
        return total
