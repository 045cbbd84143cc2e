"""Quality of a model on held-out pairs: accuracy with its interval, calibration, rank correlation, spread.

Margins are differences of standardised scores, first minus second, by a member that trained on neither episode.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from services.rewardmodel.domain.episode_bootstrap import pair_mean_interval
from services.rewardmodel.domain.preferences import Ints, PreferencePairs, Reals
from shared.contracts.scores import TIE_DIGITS

BINS: Final = 10
RESAMPLES: Final = 400
TEMPERATURES: Final = np.geomspace(0.02, 50.0, 120)  # steps of 7 %: finer than a few hundred pairs can distinguish


@dataclass(frozen=True)
class HeldoutPairs:
    """The held-out pairs of all folds, the margin (P,) predicted for each pair, and its fold (P,)."""

    pairs: PreferencePairs
    margin: Reals
    fold: Ints
    value: Reals  # ratings (n,): the true order

    @property
    def hits(self) -> Reals:
        """1 where the predicted order is right, 0 where it is wrong, 0.5 where the model is undecided; (P,)."""
        truth = np.sign(self.value[self.pairs.first] - self.value[self.pairs.second])
        return (np.sign(self.margin) * truth + 1.0) / 2.0

    @property
    def untied(self) -> NDArray[np.bool_]:
        """Whether the scores of each pair differ at all; (P,)."""
        return np.abs(self.value[self.pairs.first] - self.value[self.pairs.second]) > 1e-9


@dataclass(frozen=True)
class Reliability:
    """Calibration on confident held-out pairs.

    `temperature` is fitted on all of them; `ece` and `brier` are cross-fitted: each fold is measured with the
    temperature of the others.
    """

    temperature: float
    ece: float
    brier: float


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """Over the newest epoch's states: standard deviation of the ensemble mean, and the share beyond two deviations."""

    deviation: float
    outside: float


def accuracy(hits: Reals, selected: NDArray[np.bool_]) -> float | None:
    """Mean of the selected hits, or None if none is selected."""
    return float(hits[selected].mean()) if selected.any() else None


def bootstrap_interval(heldout: HeldoutPairs, episode: Ints, rng: np.random.Generator) -> tuple[float, float] | None:
    """95 % interval of the confident accuracy by a bootstrap that resamples episodes; None without confident pairs.

    `episode` (n,) numbers each row's episode from 0.
    """
    confident = heldout.pairs.confident
    if not confident.any():
        return None
    first, second = episode[heldout.pairs.first[confident]], episode[heldout.pairs.second[confident]]
    count = int(episode.max()) + 1
    draws = (np.bincount(rng.integers(0, count, count), minlength=count) for _ in range(RESAMPLES))
    return pair_mean_interval(heldout.hits[confident], first, second, draws)


def fit_temperature(margin: Reals, outcome: Reals) -> float:
    """Temperature scaling (Guo et al. 2017, arXiv:1706.04599): the divisor of the margins with the highest likelihood.

    `margin` and `outcome` are (P,); an outcome is 1 if the first is better, else 0. Returns 1 without data. One
    pseudo-pair against the model keeps the result finite when every margin is right.
    """
    if not len(margin):
        return 1.0
    scaled = np.where(outcome > 0.5, margin, -margin)[None, :] / TEMPERATURES[:, None]
    loss = np.logaddexp(0.0, -scaled).sum(axis=1) + np.logaddexp(0.0, np.abs(scaled).mean(axis=1))
    return float(TEMPERATURES[loss.argmin()])


def measure_reliability(heldout: HeldoutPairs) -> Reliability | None:
    """Measure each fold with the temperature fitted on the others; None without confident pairs."""
    confident = heldout.pairs.confident
    margin, fold, hits = heldout.margin[confident], heldout.fold[confident], heldout.hits[confident]
    if not len(margin):
        return None
    # Orient each pair as the model prefers: `right` says whether its prediction was right.
    confidence, right = np.abs(margin), (hits > 0.5).astype(np.float64)
    probability = np.empty(len(margin))
    for one in np.unique(fold):
        others = fold != one if (fold != one).any() else fold == one
        probability[fold == one] = expit(confidence[fold == one] / fit_temperature(confidence[others], right[others]))
    brier = float(np.mean((probability - right) ** 2))
    # An undecided pair is predicted at one half and counts as one half: it is right as often as wrong.
    return Reliability(fit_temperature(confidence, right), equal_mass_calibration_error(probability, hits), brier)


def average_ranks(values: Reals) -> Reals:
    """Ranks (n,) from 1; ties get their mean. Not scipy.stats.rankdata: its import costs the service 60 MB."""
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean: Reals = (np.cumsum(counts) - (counts - 1) / 2)[position]
    return mean


def equal_mass_calibration_error(probability: Reals, outcome: Reals) -> float:
    """ECE (arXiv:1706.04599): mean distance of predicted probability and observed share.

    Both arrays are (P,). Each of the BINS bins has equally many pairs.
    """
    order = np.argsort(probability)
    bins = np.array_split(order, min(BINS, len(order)))
    return float(sum(len(b) * abs(probability[b].mean() - outcome[b].mean()) for b in bins) / len(order))


def rank_correlation(score: Reals, value: Reals, fold: Ints) -> float | None:
    """Spearman's correlation within each fold, averaged by size; None if no fold has one.

    All arrays are (n,). Scores of different members are not comparable, so folds are not mixed. Ratings that differ by
    rounding alone are ties.
    """
    correlations, sizes = [], []
    rating = value.round(TIE_DIGITS)
    for one in np.unique(fold):
        rows = fold == one
        a, b = average_ranks(score[rows]), average_ranks(rating[rows])
        if rows.sum() >= 3 and a.std() > 0 and b.std() > 0:
            correlations.append(float(np.corrcoef(a, b)[0, 1]))
            sizes.append(int(rows.sum()))
    return float(np.clip(np.average(correlations, weights=sizes), -1, 1)) if correlations else None
