"""Samples the states of segments and pools their scores into one score per segment."""

import torch
from torch import Tensor

from shared.contracts.card import Pooling


class StateSampler:
    """Which stored states of a segment are read, and how their scores become the segment's score.

    `mean` reads one random state of each of `strata` equal parts, an unbiased sample of the mean at a fraction of its
    cost; `gain` is the score of the last state minus that of the first.
    """

    def __init__(self, states: Tensor, pooling: Pooling, strata: int, seed: int) -> None:
        """`states` is (n, S, 128), standardised."""
        self._states = states
        self._pooling = pooling
        self._strata = min(strata, states.shape[1])
        self._rng = torch.Generator().manual_seed(seed)

    def inputs(self, rows: Tensor, sampled: bool) -> Tensor:
        """States (M, B * s, 128) of the segments `rows` (M, B); without `sampled`, the middle of each part."""
        where = self._positions(sampled)
        return self._states[rows[:, :, None], where].flatten(1, 2)

    def hidden(self, share: Tensor) -> Tensor:
        """A random factor (M, 1, 128) that hides a share (M,) of the features and scales the others up."""
        drawn = torch.rand(len(share), 1, self._states.shape[2], generator=self._rng)
        return (drawn >= share[:, None, None]) / (1.0 - share[:, None, None])

    def pool(self, scores: Tensor, segments: int) -> Tensor:
        """Segment scores (M, B) from state scores (M, B * s)."""
        apart = scores.reshape(len(scores), segments, -1)
        pooled: Tensor = apart[:, :, 1] - apart[:, :, 0] if self._pooling == "gain" else apart.mean(2)
        return pooled

    def _positions(self, sampled: bool) -> Tensor:
        length = self._states.shape[1]
        if self._pooling == "gain":
            return torch.tensor([0, length - 1])
        width = length // self._strata
        within = torch.randint(width, (self._strata,), generator=self._rng) if sampled else width // 2
        return torch.arange(self._strata) * width + within
