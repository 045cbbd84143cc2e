"""Intervals of means over pairs, by resampling whole episodes: episodes are independent, their pairs are not."""

from collections.abc import Iterable

import numpy as np

from services.rewardmodel.domain.preferences import Ints, Reals


def pair_mean_interval(values: Reals, first: Ints, second: Ints, draws: Iterable[Ints]) -> tuple[float, float] | None:
    """95 % percentile interval of the mean of `values` (P,); None if no draw has a pair.

    `first` and `second` (P,) number the episodes of each pair. Each draw (episodes,) says how often it has each
    episode. A pair of two episodes counts as often as both occur together: the product of their numbers. A pair within
    one episode counts as often as that episode: two copies of it hold the pair twice, not four times.
    """
    pairs, place = np.unique(np.stack((first, second)), axis=1, return_inverse=True)
    sums = np.stack((np.bincount(place.ravel(), values), np.bincount(place.ravel())))  # of values, and of pairs
    one, other = pairs
    within = one == other
    means = []
    for draw in draws:
        times = draw.astype(np.float64)
        total, number = sums @ (times[one] * np.where(within, 1.0, times[other]))
        if number > 0:
            means.append(float(total / number))
    if not means:
        return None
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))
