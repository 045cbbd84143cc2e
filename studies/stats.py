"""Statistics for a few seeds: interquartile mean, stratified bootstrap, probability of improvement, permutation test.

After Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (arXiv:2108.13264).
A stratum is a world: `strata` holds one array of scores per world, (n,). With one world nothing is stratified. The
intervals of few seeds are wide, which is why they are shown. Shares have Wilson's interval.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Strata = Sequence[Reals]
Interval = tuple[float, float, float]
"""A value, and the lower and upper bound of its 95 % interval."""

RESAMPLES = 10_000  # with fewer, the third digit of an interval is noise
TRIMMED = 0.25  # share cut off at each end of the sorted scores
ROUNDING = 1e-12  # numbers that differ by less are equal: sums of equal numbers in another order differ so much


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float

    def rounded(self, digits: int) -> Interval:
        """The three numbers for a file."""
        return (round(self.value, digits), round(self.low, digits), round(self.high, digits))


def share_estimate(count: int, of: int) -> Estimate:
    """Share `count / of` with its Wilson interval (Wilson 1927): within 0 and 1, and of some width at both.

    ValueError for a share of nothing.
    """
    from scipy.stats import binomtest  # it takes a second to import, and few commands show shares

    interval = binomtest(count, of).proportion_ci(method="wilson")
    return Estimate(count / of, float(interval.low), float(interval.high))


def iqm(scores: Reals) -> float:
    """Mean of the middle half of `scores` (n,); if 4 does not divide n, border values count in part.

    rliable cuts whole values (`scipy.stats.trim_mean`): the two agree where 4 divides n.
    """
    return float(iqm_rows(np.sort(scores)[None, :])[0])


def iqm_rows(ordered: Reals) -> Reals:
    """Interquartile mean of each row of `ordered` (R, n), whose rows are sorted."""
    count = ordered.shape[1]
    edges = np.arange(count + 1) / count
    weight = np.minimum(edges[1:], 1 - TRIMMED) - np.maximum(edges[:-1], TRIMMED)
    weight = np.clip(weight, 0.0, None)
    means: Reals = ordered @ (weight / weight.sum())
    return means


def iqm_estimate(*strata: Reals, seed: int = 0) -> Estimate:
    """IQM of all scores of one arm, with a percentile bootstrap that resamples the seeds of each world."""
    rng = np.random.default_rng(seed)
    draws = np.concatenate([resampled(scores, rng) for scores in strata], axis=1)
    low, high = np.quantile(iqm_rows(np.sort(draws, axis=1)), (0.025, 0.975))
    return Estimate(iqm(np.concatenate(strata)), float(low), float(high))


def mean_estimate(values: Reals, seed: int = 0) -> Estimate:
    """Mean of `values` (n,) with a percentile bootstrap."""
    draws = resampled(values, np.random.default_rng(seed)).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return Estimate(float(values.mean()), float(low), float(high))


def improvement(scores: Strata, others: Strata) -> float:
    """Probability that a random seed of the first arm beats one of the second in the same world; the mean over worlds.

    Ties count half.
    """
    return float(np.mean([_wins(first[None], second[None])[0] for first, second in zip(scores, others, strict=True)]))


def improvement_estimate(scores: Strata, others: Strata, seed: int = 0) -> Estimate:
    """Probability of improvement with a bootstrap that resamples the seeds of both arms in each world."""
    rng = np.random.default_rng(seed)
    pairs = zip(scores, others, strict=True)
    draws = np.mean([_wins(resampled(first, rng), resampled(second, rng)) for first, second in pairs], axis=0)
    low, high = np.quantile(draws, (0.025, 0.975))
    return Estimate(improvement(scores, others), float(low), float(high))


def permutation_p(scores: Strata, others: Strata) -> float:
    """Two-sided p of the probability of improvement if arms were assigned to seeds at random, within each world.

    Exact: it counts every assignment, 184,756 for 10 and 10 seeds, by dynamic programming over sums of ranks.
    """
    chances: dict[Fraction, float] = {Fraction(0): 1.0}
    for first, second in zip(scores, others, strict=True):
        chances = _summed(chances, _null_distribution(first, second))
    observed = abs(improvement(scores, others) - 0.5) * len(scores)
    centre = Fraction(len(scores), 2)
    return min(1.0, sum(chance for total, chance in chances.items() if abs(total - centre) >= observed - ROUNDING))


def resampled(scores: Reals, rng: np.random.Generator) -> Reals:
    """RESAMPLES draws with replacement, (RESAMPLES, n)."""
    return scores[rng.integers(0, len(scores), (RESAMPLES, len(scores)))]


def signs(differences: Reals) -> Reals:
    """-1, 0 or 1 for each difference, of any shape: 0 where only rounding makes it."""
    return np.where(np.abs(differences) <= ROUNDING, 0.0, np.sign(differences))


def _wins(scores: Reals, others: Reals) -> Reals:
    """Share of the pairs of a row that the first wins, (R,), of `scores` (R, n) and `others` (R, m)."""
    order = signs(scores[:, :, None] - others[:, None, :])
    shares: Reals = (order > 0).mean((1, 2)) + 0.5 * (order == 0).mean((1, 2))
    return shares


def _null_distribution(first: Reals, second: Reals) -> dict[Fraction, float]:
    """Chance of each probability of improvement over all assignments of these scores to arms of these sizes."""
    n, m = len(first), len(second)
    joined = np.concatenate([first, second])
    # Twice the midrank of each score, so that ties stay integers.
    below = [(joined < value - ROUNDING).sum() + (joined <= value + ROUNDING).sum() for value in joined]
    ranks = [int(count) + 1 for count in below]
    ways = np.zeros((n + 1, sum(ranks) + 1))  # [k, s]: how many sets of k scores have ranks that sum to s
    ways[0, 0] = 1.0
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, :-rank].copy()
    sums = np.flatnonzero(ways[n])
    total = ways[n].sum()
    return {Fraction(int(s) - n * (n + 1), 2 * n * m): float(ways[n, s] / total) for s in sums}


def _summed(one: dict[Fraction, float], other: dict[Fraction, float]) -> dict[Fraction, float]:
    """Distribution of the sum of two independent numbers."""
    found: dict[Fraction, float] = defaultdict(float)
    for first, chance in one.items():
        for second, also in other.items():
            found[first + second] += chance * also
    return found
