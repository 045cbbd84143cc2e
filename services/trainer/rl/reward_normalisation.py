"""Normalises the two reward streams, game and curiosity, and whitens RND's input.

All statistics survive a restart: a checkpoint holds `state()` bit for bit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.trainer.rl.gae import Floats, running_returns
from services.trainer.rl.running_stats import RunningStats

WHITENED_LIMIT = 5.0  # Burda et al. 2018: whitened observations are clipped to +-5


class RewardScaler:
    """Divides rewards by the running deviation of their discounted sum. A subtracted mean would pay for time."""

    def __init__(self, discount: float) -> None:
        self.discount = discount
        self.sums = RunningStats()
        self.open: dict[str, float] = {}  # running sum of each episode that continues in the next batch

    def scaled(self, chunks: list[tuple[str, Floats, bool]]) -> list[Floats]:
        """Update the statistics with a batch of (episode, rewards, whether it ended), then scale its rewards.

        While a runner is down the others sample twice for the same batch, so an episode may have several chunks.
        """
        seen = []
        continuing: dict[str, float] = {}
        for episode, rewards, ended in chunks:
            carried = continuing.pop(episode, self.open.get(episode, 0.0))
            sums = running_returns(rewards, self.discount, carried)
            seen.append(sums)
            if not ended:
                continuing[episode] = float(sums[-1])
        self.open = continuing
        self.sums.update(np.concatenate(seen))
        divisor = np.float32(self.sums.std)
        return [rewards / divisor for _, rewards, _ in chunks]

    def state(self) -> dict[str, Any]:
        """Plain numbers for a checkpoint, without open episodes: a restart begins new ones."""
        return self.sums.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.sums.restore(state)
        self.open = {}


class RewardNormalisation:
    """All running statistics of the learner: both reward scalers and the moments of the observations."""

    def __init__(self, shape: tuple[int, ...], discount: float, curiosity_discount: float) -> None:
        self.game = RewardScaler(discount)
        self.curiosity = RewardScaler(curiosity_discount)
        self.observations = RunningStats(shape)

    def whitened(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Update the statistics with observations (N, *shape); return them whitened and clipped."""
        self.observations.update(observations)
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
        """Restore what `state` returned."""
        self.game.restore(state["game"])
        self.curiosity.restore(state["curiosity"])
        self.observations.restore(state["observations"])
