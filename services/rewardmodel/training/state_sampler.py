"""Samples the states of segments, and pools their scores into one score per segment."""

import torch
from torch import Tensor

from shared.contracts.card import Pooling


class StateSampler:
    """Selects the states that represent a segment. M members, B segments, s states per segment.

    `mean` pooling reads one random state from each of `strata` equal parts: an unbiased sample of the mean at a
    fraction of its cost. `gain` pooling is the score of the last state minus that of the first.
    """

    def __init__(self, states: Tensor, pooling: Pooling, strata: int, seed: int) -> None:
        """`states` is (n, S, D), standardised."""
        self._states = states
        self._pooling = pooling
        self._strata = min(strata, states.shape[1])
        self._rng = torch.Generator().manual_seed(seed)

    def sample(self, rows: Tensor, random: bool) -> Tensor:
        """States (M, B * s, D) of the segments `rows` (M, B); without `random`, the middle of each part."""
        positions = self._positions(random)
        return self._states[rows[:, :, None], positions].flatten(1, 2)

    def dropout_mask(self, rate: Tensor) -> Tensor:
        """A random factor (M, 1, D): drops a share `rate` (M,) of the features and scales up the others."""
        drawn = torch.rand(len(rate), 1, self._states.shape[2], generator=self._rng)
        return (drawn >= rate[:, None, None]) / (1.0 - rate[:, None, None])

    def pool(self, scores: Tensor, segments: int) -> Tensor:
        """Segment scores (M, B) from state scores (M, B * s)."""
        by_segment = scores.reshape(len(scores), segments, -1)
        pooled: Tensor = by_segment[:, :, 1] - by_segment[:, :, 0] if self._pooling == "gain" else by_segment.mean(2)
        return pooled

    def _positions(self, random: bool) -> Tensor:
        length = self._states.shape[1]
        if self._pooling == "gain":
            return torch.tensor([0, length - 1])
        width = length // self._strata
        within = torch.randint(width, (self._strata,), generator=self._rng) if random else width // 2
        return torch.arange(self._strata) * width + within
