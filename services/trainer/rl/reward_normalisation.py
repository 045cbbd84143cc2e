"""The two reward streams, game and curiosity: their running scales and the whitening of RND's input.

Everything here is state that must survive a restart; a checkpoint holds `state()` bit for bit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.trainer.rl.gae import Floats, running_returns
from services.trainer.rl.running_stats import RunningStats

WHITENED_LIMIT = 5.0  # Burda et al. 2018: whitened observations are clipped to +-5


class RewardScaler:
    """Divides rewards by the running deviation of their discounted sum. It never subtracts: that would pay for time."""

    def __init__(self, discount: float) -> None:
        self.discount = discount
        self.sums = RunningStats()
        self.open: dict[str, float] = {}  # running sum of each episode that goes on in the next batch

    def scaled(self, chunks: list[tuple[str, Floats, bool]]) -> list[Floats]:
        """Scale the rewards of a batch, given as (episode, rewards, whether it ended). First learns, then divides.

        While a runner is away the others sample again for the same batch: an episode has more than one chunk then.
        """
        seen = []
        going_on: dict[str, float] = {}
        for episode, rewards, ended in chunks:
            carried = going_on.pop(episode, self.open.get(episode, 0.0))
            sums = running_returns(rewards, self.discount, carried)
            seen.append(sums)
            if not ended:
                going_on[episode] = float(sums[-1])
        self.open = going_on
        self.sums.add(np.concatenate(seen))
        divisor = np.float32(self.sums.std)
        return [rewards / divisor for _, rewards, _ in chunks]

    def state(self) -> dict[str, Any]:
        """Plain numbers for a checkpoint. Open episodes are left out: a restart begins new ones."""
        return self.sums.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.sums.restore(state)
        self.open = {}


class RewardNormalisation:
    """All running statistics of the learner."""

    def __init__(self, shape: tuple[int, ...], discount: float, curiosity_discount: float) -> None:
        self.game = RewardScaler(discount)
        self.curiosity = RewardScaler(curiosity_discount)
        self.observations = RunningStats(shape)

    def whitened(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Learn from a batch of observations, shape (N, *shape), and return it whitened and clipped."""
        self.observations.add(observations)
        white = (observations - self.observations.mean) / self.observations.std
        return np.clip(white, -WHITENED_LIMIT, WHITENED_LIMIT).astype(np.float32)

    def state(self) -> dict[str, Any]:
        """Plain numbers for a checkpoint."""
        return {
            "game": self.game.state(),
            "curiosity": self.curiosity.state(),
            "observations": self.observations.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.game.restore(state["game"])
        self.curiosity.restore(state["curiosity"])
        self.observations.restore(state["observations"])
