"""The hyperparameters of PPO and RND, each with its source and the effect of a wrong value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """PPO and RND constants: the original system's values where it had any, and the reason where they differ."""

    learning_rate: float = 3e-4
    discount: float = 0.99
    """Also the discount of potential-based shaping: two different values would change the best policy."""
    gae_lambda: float = 0.95
    """GAE lambda."""
    clip: float = 0.2
    value_clip: float = 10.0
    """Squared value errors above this give no gradient. Rewards are divided by the running deviation of their
    discounted sum first, so an error of 3 deviations still counts; with raw rewards of -50 and more the same
    value silences the critic permanently."""
    value_coefficient: float = 0.5
    entropy: float = 0.02
    """The original system has 0.01. With that the policy stops pressing buttons before it meets what the sword cuts: on
    garden it visits every tile of seven rooms and never opens the eighth (docs/study.md)."""
    epochs: int = 10
    minibatch: int = 512
    gradient_norm: float = 0.5
    hidden: tuple[int, ...] = (256, 256)
    curiosity: float = 0.5
    """Weight of the curiosity advantage relative to the game's (Burda et al. 2018 use 1 to 2)."""
    curiosity_discount: float = 0.99
    predictor_share: float = 0.25
    """Share of samples that train the RND predictor: with all of them novelty would fade within a few updates."""

    def minibatch_of(self, batch_size: int) -> int:
        """Minibatch for a batch: the whole batch if it is smaller than a minibatch."""
        return min(self.minibatch, batch_size)
