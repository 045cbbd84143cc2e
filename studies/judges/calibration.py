"""What the uncertainty of a judge's score means: fitted on one half of the bank, reported on the other.

The reward model learns from the probability that one segment is better than another, which follows from the difference
of their scores and from the standard errors of both. A judge's own uncertainty says how sure it is, not how right. Two
parameters are fitted to pairs whose truth is known: the scale of standard errors, and an error that all scores have.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from studies.judges.orders import Pairs
from studies.stats import Reals, signs

BINS: Final = 10
MAX_SCALE: Final = 20.0
STARTS: Final = ((1.0, 0.05), (3.0, 0.2), (0.3, 0.2))


@dataclass(frozen=True, slots=True)
class SpreadCalibration:
    """`scale` multiplies a score's standard error; `floor` is the error of every score beyond its votes."""

    scale: float = 1.0
    floor: float = 0.03  # what the reward model assumes

    def probability(self, score: Reals, error: Reals) -> Reals:
        """Return the probability that i is better than j, (n, n)."""
        probability: Reals = ndtr(self._z(score, error))
        return probability

    def loss(self, score: Reals, error: Reals, better: Pairs) -> float:
        """Return the mean negative log-likelihood of these pairs."""
        return float(-log_ndtr(self._z(score, error)[better]).mean())

    def _z(self, score: Reals, error: Reals) -> Reals:
        own = (self.scale * error) ** 2 + self.floor**2
        spread: Reals = np.sqrt(own[:, None] + own[None, :])
        return (score[:, None] - score[None, :]) / spread


def fit(score: Reals, error: Reals, better: Pairs) -> SpreadCalibration:
    """Return the calibration of the greatest likelihood. Raises ValueError without a pair."""
    if not better.any():
        raise ValueError("no pair of segments differs in gain: ask about more segments")

    def loss(parameters: Reals) -> float:
        return SpreadCalibration(*np.exp(parameters)).loss(score, error, better)

    bounds = [(np.log(1e-3), np.log(MAX_SCALE)), (np.log(1e-3), np.log(10.0))]
    fits = [minimize(loss, np.log(start), method="L-BFGS-B", bounds=bounds) for start in STARTS]
    scale, floor = np.exp(min(fits, key=lambda found: float(found.fun)).x)
    return SpreadCalibration(float(scale), float(floor))


def equal_width_calibration_error(probability: Reals, better: Pairs) -> float | None:
    """Return the expected calibration error over these pairs, in BINS bins of equal width; None without a pair.

    Each pair counts once, from the side that the judge prefers: its confidence against how often it is right.
    """
    sure = probability[better]
    if not len(sure):
        return None
    confidence, right = np.maximum(sure, 1 - sure), 0.5 + 0.5 * signs(sure - 0.5)
    place = np.minimum(((confidence - 0.5) * 2 * BINS).astype(np.int64), BINS - 1)
    gaps = [abs(float((confidence - right)[place == one].sum())) for one in range(BINS)]
    return sum(gaps) / len(sure)
