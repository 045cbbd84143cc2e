"""How strongly each judged segment is imitated. Pure.

The judges' score of a segment stands in for the return of the papers, and the mean score for the critic's value: a
segment's rewards are not recorded step by step, and its score is what the judges say about all of it.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.contracts.epoch import Imitation
from shared.contracts.run import ImitationConfig

LIMIT: Final = 20.0
"""Largest weight of `awr`, as in Peng et al. 2019 (arXiv:1910.00177): one outlier must not be all that is imitated."""


def segment_weights(config: ImitationConfig, imitation: Imitation) -> NDArray[np.float64]:
    """The weight of each segment, (K,), not negative; at least one is positive.

    `sil` clips the advantage at 0 (Oh et al. 2018, arXiv:1806.05635): a segment at or below the mean has weight 0.
    """
    advantages = np.array([one.score for one in imitation.segments]) - imitation.baseline
    if config.mode == "sil":
        return np.maximum(advantages, 0.0)
    return np.minimum(np.exp(advantages / config.beta), LIMIT)
