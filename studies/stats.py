"""Statistics for a few seeds: interquartile mean, stratified bootstrap, probability of improvement.

After Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice". Pure NumPy; the
intervals of few seeds are wide, which is why they are shown.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

RESAMPLES = 10_000  # with fewer, the third digit of an interval is noise
TRIMMED = 0.25  # share cut off at each end of the sorted scores


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


def iqm(scores: Reals) -> float:
    """Mean of the middle half of `scores` (n,); if 4 does not divide n, border values count in part."""
    return float(iqm_rows(np.sort(scores)[None, :])[0])


def iqm_rows(ordered: Reals) -> Reals:
    """Interquartile mean of each row of `ordered` (R, n), whose rows are sorted."""
    count = ordered.shape[1]
    edges = np.arange(count + 1) / count
    weight = np.minimum(edges[1:], 1 - TRIMMED) - np.maximum(edges[:-1], TRIMMED)
    weight = np.clip(weight, 0.0, None)
    means: Reals = ordered @ (weight / weight.sum())
    return means


def iqm_estimate(scores: Reals, seed: int = 0) -> Estimate:
    """IQM of one arm's seeds (n,) with a percentile bootstrap over seeds.

    One world is one stratum; several worlds would be resampled separately.
    """
    draws = resampled(scores, np.random.default_rng(seed))
    low, high = np.quantile(iqm_rows(np.sort(draws, axis=1)), (0.025, 0.975))
    return Estimate(iqm(scores), float(low), float(high))


def improvement(scores: Reals, others: Reals) -> float:
    """Probability that a random seed of the first beats a random seed of the second; ties count half."""
    difference = scores[:, None] - others[None, :]
    return float((difference > 0).mean() + 0.5 * (difference == 0).mean())


def improvement_estimate(scores: Reals, others: Reals, seed: int = 0) -> Estimate:
    """Probability of improvement with a bootstrap that resamples both arms (the strata)."""
    rng = np.random.default_rng(seed)
    first, second = resampled(scores, rng), resampled(others, rng)
    difference = first[:, :, None] - second[:, None, :]
    draws = (difference > 0).mean((1, 2)) + 0.5 * (difference == 0).mean((1, 2))
    low, high = np.quantile(draws, (0.025, 0.975))
    return Estimate(improvement(scores, others), float(low), float(high))


def resampled(scores: Reals, rng: np.random.Generator) -> Reals:
    """RESAMPLES draws with replacement, (RESAMPLES, n)."""
    return scores[rng.integers(0, len(scores), (RESAMPLES, len(scores)))]
