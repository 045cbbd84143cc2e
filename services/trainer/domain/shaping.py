"""How a reward model enters the reward: `gain`, `potential` or `additive`. A run with `none` builds no Shaper.

`gain` is F = coefficient * (Phi(s') - Phi(s)): the rewards of a segment sum to the segment's gain in Phi, the sum that
the Bradley-Terry loss was trained on. Every round trip sums to 0, so nothing can be farmed. But reaching a state with
high Phi pays and the reward stays: this changes the optimal policy.

`potential` is F = coefficient * (gamma * Phi(s') - Phi(s)). It preserves every optimal policy (Ng, Harada and Russell
1999) under four conditions: gamma is the learner's, a terminal state has Phi = 0, truncation keeps Phi (the learner
bootstraps there), and each Phi is the one at the time of the visit (Devlin and Kudenko 2012). So every state is
evaluated once, its Phi is kept, and a new model gets a new Shaper, with new episodes. F is never clipped: a clipped
term no longer telescopes. NumPy only; independent of any environment.
"""

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from shared.contracts.learning.reward_learning import ShapingConfig
from shared.rewardnet import Floats, RewardNet, conservative_potential

Mask = NDArray[np.bool_]
Rewards = NDArray[np.float64]


class Potential(Protocol):
    """A value of states."""

    def __call__(self, observations: Floats) -> Floats:
        """Phi (N,) of `observations` (N, D) float32."""
        ...


class ConservativePotential:
    """Phi = mean - k * (deviation - usual deviation) of the ensemble, clipped to +-PHI_LIMIT.

    Phi sinks where the members disagree more than on the training states: unknown states are not good. Subtracting the
    usual deviation centres Phi, because an offset c costs coefficient * (1 - gamma) * c on every step.

    A model that reads lasting features alone gives equal scores for many steps, so an unchanged batch of inputs returns
    the last result. (Not row by row: a batch of another size rounds differently.)
    """

    def __init__(self, net: RewardNet, conservatism: float = 1.0) -> None:
        """`conservatism` is k."""
        self._net = net
        self._k = conservatism
        self._usual = net.weights.disagreement
        self._reads = np.flatnonzero(net.weights.input_scale)
        self._last: tuple[Floats, Floats] | None = None

    @classmethod
    def from_bytes(cls, raw: bytes, observation: str, conservatism: float) -> Self:
        """Load a weights file; raise ContractError if it is damaged or made for another observation layout."""
        return cls(RewardNet.from_bytes(raw, observation), conservatism)

    def __call__(self, observations: Floats) -> Floats:
        """Phi (N,) of `observations` (N, D) float32, centred and clipped. Callers must not write to it."""
        inputs = observations[:, self._reads]
        if self._last is None or not np.array_equal(inputs, self._last[0]):
            self._last = inputs, self._evaluated(observations)
        return self._last[1]

    def _evaluated(self, observations: Floats) -> Floats:
        return conservative_potential(self._net.forward(observations), self._k, self._usual)


class Shaper:
    """Shaping rewards for N environments together; a single environment is N = 1. Not thread-safe.

    Usage, with the final observation of an episode available at its last step (autoreset mode SAME_STEP, or none):

        shaper = Shaper(envs, config, gamma, potential)
        shaper.begin(first_observations)
        extra = shaper.step(reached_observations, terminated, truncated)   # (N,), add to the rewards
        shaper.begin(new_first_observations, terminated | truncated)

    With Gymnasium's NEXT_STEP autoreset, `advance` does both: the step after an ending returns the first observation
    of the next episode and gets no shaping. An environment that has ended and not begun gets 0.
    """

    def __init__(self, envs: int, config: ShapingConfig, gamma: float, potential: Potential) -> None:
        """`gamma` must be the learner's discount."""
        if not 0.0 < gamma <= 1.0:
            raise ValueError(f"gamma is {gamma}: shaping needs the learner's discount, above 0 and at most 1")
        self.config = config
        self.gamma = gamma
        self._potential = potential
        self._all_live = False  # the usual, fast case
        self._phi: Rewards = np.zeros(envs)
        self._live: Mask = np.zeros(envs, np.bool_)

    def begin(self, observations: Floats, started: Mask | None = None) -> None:
        """Store Phi(s0) of the environments in the mask `started` (N,), or of all; `observations` is (N, D)."""
        which = np.arange(len(self._phi)) if started is None else np.flatnonzero(started)
        if not len(which):
            return
        self._phi[which] = self._potential(observations[which])
        self._live[which] = True
        self._all_live = bool(self._live.all())

    def step(self, observations: Floats, terminated: Mask, truncated: Mask) -> Rewards:
        """Shaping rewards (N,) float64 for reaching `observations` (N, D); masks are (N,).

        At an episode's last step `observations` holds its final state, not the first one of the next episode.
        """
        phi = self._evaluate(observations)
        if self.config.mode == "additive":
            rewards = self.config.coefficient * phi
        elif self.config.mode == "gain":
            rewards = self.config.coefficient * (phi - self._phi)
        else:
            rewards = shaping(self._phi, phi, terminated, self.gamma, self.config.coefficient)
        if not self._all_live:
            rewards[~self._live] = 0.0
        self._phi = phi
        ended = terminated | truncated
        if ended.any():
            self._live &= ~ended
            self._all_live = False
        return rewards

    def advance(self, observations: Floats, terminated: Mask, truncated: Mask) -> Rewards:
        """`step` and `begin` for NEXT_STEP autoreset: environments that had ended begin with `observations`."""
        fresh = ~self._live
        rewards = self.step(observations, terminated, truncated)
        self.begin(observations, fresh)
        return rewards

    def _evaluate(self, observations: Floats) -> Rewards:
        if self._all_live:
            return self._potential(observations).astype(np.float64)
        phi = np.zeros(len(self._phi))
        live = np.flatnonzero(self._live)
        if len(live):
            phi[live] = self._potential(observations[live])
        return phi


def shaping(phi: Rewards, phi_next: Rewards, terminated: Mask, gamma: float, coefficient: float = 1.0) -> Rewards:
    """F = coefficient * (gamma * Phi(s') - Phi(s)), elementwise, with Phi(s') = 0 where s' is terminal."""
    return coefficient * (gamma * np.where(terminated, 0.0, phi_next) - phi)
