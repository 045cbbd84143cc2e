"""How strongly each judged segment and each trajectory of the archive is imitated. Pure.

One score stands in for the returns of the papers, and the mean score for the critic's value: a segment's rewards are
not recorded step by step, and its score is what the judges say about all of it.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.contracts.learning.restarts import ImitationConfig

LIMIT: Final = 20.0
"""Largest weight of `awr`, as in Peng et al. 2019 (arXiv:1910.00177): one outlier must not be all that is imitated."""


def score_weights(config: ImitationConfig, scores: Sequence[float], baseline: float) -> NDArray[np.float64]:
    """The weight of each score, (K,), not negative. Scores are from 0 to 1.

    `sil` clips the advantage at 0 (Oh et al. 2018, arXiv:1806.05635): a score at or below the mean has weight 0.
    """
    advantages = np.array(scores) - baseline
    if config.mode == "sil":
        return np.maximum(advantages, 0.0)
    return np.minimum(np.exp(advantages / config.beta), LIMIT)


def return_weights(config: ImitationConfig, returns: Sequence[float]) -> NDArray[np.float64]:
    """The weight of each trajectory, (K,), by its return scaled to 0..1 over all of them: rewards have any unit.

    Equal returns count as 0: `sil` then imitates none of them, and `awr` all alike.
    """
    least, most = min(returns), max(returns)
    scores = [(one - least) / (most - least) if most > least else 0.0 for one in returns]
    return score_weights(config, scores, sum(scores) / len(scores))
