"""A learner's share of one minibatch, and its weight, so that the gradients of all learners add up to that of one."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray


class MinibatchShare(NamedTuple):
    """The rows of one learner. Losses are means over its rows; `weight` makes them parts of the whole's mean."""

    rows: NDArray[np.int64]
    weight: float
    predicted: int
    """How many of the first rows train the RND predictor."""
    predicted_weight: float

    @classmethod
    def of(cls, minibatch: NDArray[np.int64], rank: int, ranks: int, predictor_share: float) -> Self:
        """Every `ranks`-th row from row `rank` on.

        A learner without a row takes the first one with weight 0: it adds nothing, and has a gradient wherever the
        others have one.
        """
        own = minibatch[rank::ranks]
        predicted = predicted_rows(len(minibatch), predictor_share)
        kept = len(range(rank, predicted, ranks))
        return cls(
            rows=own if len(own) else minibatch[:1],
            weight=len(own) / len(minibatch),
            predicted=max(1, kept),
            predicted_weight=kept / predicted,
        )

    @property
    def predictor_ratio(self) -> float:
        """The factor of the predictor's loss within a loss that is multiplied by `weight`."""
        return self.predicted_weight / self.weight if self.weight else 0.0


def predicted_rows(rows: int, predictor_share: float) -> int:
    """How many rows of a minibatch train the RND predictor: at least one."""
    return max(1, round(rows * predictor_share))
