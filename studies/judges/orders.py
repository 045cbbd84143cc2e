"""How well scores order pairs of segments, with intervals that resample whole episodes.

Segments of one episode are alike, and n segments are in n(n-1)/2 pairs: neither segments nor pairs are independent.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from services.rewardmodel.domain.episode_bootstrap import pair_mean_interval
from studies.stats import Estimate, Reals, signs

Ints = NDArray[np.int64]
Pairs = NDArray[np.bool_]

RESAMPLES: Final = 2_000


def share_ordered(score: Reals, better: Pairs) -> float | None:
    """Return the share of pairs that `score` (n,) orders rightly, a tie counting half; None without a pair.

    `better[i, j]` says that i is truly better than j.
    """
    if not better.any():
        return None
    return float(_right(score)[better].mean())


def concordance(score: Reals, better: Pairs, episode: Ints, seed: int = 0) -> Estimate | None:
    """Return `share_ordered` with a 95 % interval. `episode` (n,) numbers the episodes. None without a pair."""
    return _mean_of_pairs(_right(score), better, episode, seed)


def concordance_over(score: Reals, other: Reals, better: Pairs, episode: Ints, seed: int = 0) -> Estimate | None:
    """Return how much larger the share ordered rightly is with `score` than with `other`, on the same pairs.

    Scores are (n,) or (seeds, n): then the difference is the mean over seeds.
    """
    return _mean_of_pairs(_right(score) - _right(other), better, episode, seed)


def _right(score: Reals) -> Reals:
    """Whether `score` (n,) or (seeds, n) puts i above j: 1, 0, or one half for a tie; the mean over seeds, (n, n)."""
    each = np.atleast_2d(score)
    right: Reals = (0.5 + 0.5 * signs(each[:, :, None] - each[:, None, :])).mean(axis=0)
    return right


def _mean_of_pairs(values: Reals, better: Pairs, episode: Ints, seed: int) -> Estimate | None:
    """The mean of `values` (n, n) over the pairs of `better`; None without a pair."""
    names, number = np.unique(episode, return_inverse=True)
    one, other = np.nonzero(better)
    return mean_over_pairs(values[one, other], number[one], number[other], len(names), seed)


def mean_over_pairs(values: Reals, first: Ints, second: Ints, episodes: int, seed: int = 0) -> Estimate | None:
    """Return the mean of `values` (P,) with a 95 % interval; None without a pair.

    `first` and `second` (P,) are the episodes of each pair, numbered from 0 below `episodes`.
    """
    if not len(values):
        return None
    draws = np.random.default_rng(seed).multinomial(episodes, np.full(episodes, 1 / episodes), RESAMPLES)
    interval = pair_mean_interval(values, first, second, draws)
    return None if interval is None else Estimate(float(values.mean()), *interval)


def flips(score: Reals, again: Reals, better: Pairs) -> float | None:
    """Return the share of these pairs that two scores of the same segments order oppositely; None without a pair."""
    if not better.any():
        return None
    opposite = signs(score[:, None] - score[None, :]) * signs(again[:, None] - again[None, :]) < 0
    return float(opposite[better].mean())


def gained_more(gain: Ints) -> Pairs:
    """Pairs of which the first gained more milestones."""
    return gain[:, None] > gain[None, :]


def gained_any(gain: Ints) -> Pairs:
    """Pairs of which only the first gained anything: their concordance is the area under the ROC curve."""
    pairs: Pairs = (gain > 0)[:, None] & (gain == 0)[None, :]
    return pairs


def gained_several(gain: Ints) -> Pairs:
    """Pairs of which the first gained several milestones and the second one: a judge must count to order them."""
    pairs: Pairs = (gain > 1)[:, None] & (gain == 1)[None, :]
    return pairs


def led_to_more(gain: Ints, following: NDArray[np.float64]) -> Pairs:
    """Pairs that gained equally, of which the first gained more in the segments that follow; NaN is unknown."""
    pairs: Pairs = (gain[:, None] == gain[None, :]) & (following[:, None] > following[None, :])
    return pairs
