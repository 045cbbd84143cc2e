"""How good a model is on held-out pairs: accuracy with its interval, calibration, rank correlation.

Margins are differences of standardised scores, first minus second, predicted by a member that saw neither episode.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from services.rewardmodel.domain.preferences import Ints, PreferencePairs, Reals

BINS: Final = 10
RESAMPLES: Final = 400
TEMPERATURES: Final = np.geomspace(0.02, 50.0, 120)  # steps of 7 %: finer than a few hundred pairs can tell apart


@dataclass(frozen=True)
class HeldoutPairs:
    """All held-out pairs of all folds: the pairs, the margin (P,) predicted for each, and its fold (P,)."""

    pairs: PreferencePairs
    margin: Reals
    fold: Ints
    value: Reals  # ratings (n,), to know the true order

    @property
    def hits(self) -> Reals:
        """1 where the order is right, 0 where it is wrong, 0.5 where the model is undecided."""
        truth = np.sign(self.value[self.pairs.first] - self.value[self.pairs.second])
        return (np.sign(self.margin) * truth + 1.0) / 2.0

    @property
    def untied(self) -> NDArray[np.bool_]:
        """Pairs whose scores differ at all."""
        return np.abs(self.value[self.pairs.first] - self.value[self.pairs.second]) > 1e-9


def accuracy(hits: Reals, chosen: NDArray[np.bool_]) -> float | None:
    """Mean of the chosen hits, or None if there are none."""
    return float(hits[chosen].mean()) if chosen.any() else None


def bootstrap_interval(heldout: HeldoutPairs, episode: Ints, rng: np.random.Generator) -> tuple[float, float] | None:
    """95 % interval of the confident accuracy, resampling episodes: the pairs are not independent, the episodes are.

    `episode` (n,) numbers the episode of each row from 0.
    """
    sure = heldout.pairs.confident
    if not sure.any():
        return None
    first, second = episode[heldout.pairs.first[sure]], episode[heldout.pairs.second[sure]]
    hits, count = heldout.hits[sure], int(episode.max()) + 1
    found = []
    for _ in range(RESAMPLES):
        times = np.bincount(rng.integers(0, count, count), minlength=count)
        weight = times[first] * times[second]
        if weight.sum() > 0:
            found.append(float((weight * hits).sum() / weight.sum()))
    return (float(np.quantile(found, 0.025)), float(np.quantile(found, 0.975))) if found else None


def fit_temperature(margin: Reals, outcome: Reals) -> float:
    """The divisor of the margins under which `outcome` (1 if the first is better, else 0) is likeliest; 1 without data.

    One pseudo-pair against the model keeps it finite when every margin is right.
    """
    if not len(margin):
        return 1.0
    scaled = np.where(outcome > 0.5, margin, -margin)[None, :] / TEMPERATURES[:, None]
    loss = np.logaddexp(0.0, -scaled).sum(axis=1) + np.logaddexp(0.0, np.abs(scaled).mean(axis=1))
    return float(TEMPERATURES[loss.argmin()])


@dataclass(frozen=True)
class Reliability:
    """Calibration on confident held-out pairs. `temperature` is fitted on all of them; ECE and Brier are measured on
    folds that had no part in fitting theirs."""

    temperature: float
    ece: float
    brier: float


def reliability(heldout: HeldoutPairs) -> Reliability | None:
    """Fit the temperature on all folds but one, measure on that one, for each; None without confident pairs."""
    sure = heldout.pairs.confident
    margin, fold, outcome = heldout.margin[sure], heldout.fold[sure], (heldout.hits[sure] > 0.5).astype(np.float64)
    if not len(margin):
        return None
    # `outcome` now says whether the prediction was right: the pair in the orientation that the model prefers.
    confidence = np.abs(margin)
    probability = np.empty(len(margin))
    for one in np.unique(fold):
        others = fold != one if (fold != one).any() else fold == one
        probability[fold == one] = expit(confidence[fold == one] / fit_temperature(confidence[others], outcome[others]))
    brier = float(np.mean((probability - outcome) ** 2))
    # An undecided pair is predicted at one half and counts as one half: it is as often right as wrong.
    return Reliability(
        fit_temperature(confidence, outcome), expected_calibration_error(probability, heldout.hits[sure]), brier
    )


def average_ranks(values: Reals) -> Reals:
    """Ranks from 1, ties at their mean. By hand, because importing scipy.stats costs the service 60 MB of memory."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean: Reals = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return mean


def expected_calibration_error(probability: Reals, outcome: Reals) -> float:
    """ECE: mean distance of predicted probability and share of outcomes, over BINS bins with equally many pairs."""
    order = np.argsort(probability)
    bins = np.array_split(order, min(BINS, len(order)))
    return float(sum(len(b) * abs(probability[b].mean() - outcome[b].mean()) for b in bins) / len(order))


def rank_correlation(score: Reals, value: Reals, fold: Ints) -> float | None:
    """Spearman within each fold (scores of different members do not compare), averaged by size; None without any."""
    found, sizes = [], []
    for one in np.unique(fold):
        rows = fold == one
        a, b = average_ranks(score[rows]), average_ranks(value[rows])
        if rows.sum() >= 3 and a.std() > 0 and b.std() > 0:
            found.append(float(np.corrcoef(a, b)[0, 1]))
            sizes.append(int(rows.sum()))
    return float(np.clip(np.average(found, weights=sizes), -1, 1)) if found else None


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """Over the newest epoch's states: deviation of the ensemble's mean, and the share beyond two deviations."""

    deviation: float
    outside: float
