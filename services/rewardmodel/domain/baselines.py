"""What a reward model must beat: the clock, and a straight line.

A model that only knows how late it is, or that only weighs features, would do as well without a network; if one of
them predicts the judges as well, the network has learnt nothing more. Logistic regression on feature differences.
"""

from typing import Final

import numpy as np
from scipy.special import expit

from services.rewardmodel.domain.preferences import Ints, PreferencePairs, Reals

NEWTON_STEPS: Final = 12
RIDGE: Final = 1.0  # of weights in standardised features, in pairs: without it separable data have no optimum
MAX_PAIRS: Final = 20_000  # more do not change 128 weights noticeably


def step_features(first_step: Reals, steps: Reals) -> Reals:
    """The position of a segment in its episode (n, 4), as a line, a curve, and early and late emphasised."""
    middle = (first_step + steps / 2) / max(float((first_step + steps).max(initial=1.0)), 1.0)
    return np.stack([middle, middle**2, np.sqrt(middle), np.log1p(10 * middle)], axis=1)


def linear_margins(features: Reals, train: PreferencePairs, test: PreferencePairs) -> Reals:
    """Margins (P,) of the `test` pairs under weights fitted on the `train` pairs; `features` is (n, d)."""
    weights = fit(_standardised(features), train)
    margins: Reals = (_standardised(features)[test.first] - _standardised(features)[test.second]) @ weights
    return margins


def fit(features: Reals, train: PreferencePairs) -> Reals:
    """Weights (d,) of the logistic regression of the soft labels on feature differences."""
    keep = _spread_out(len(train))
    difference = features[train.first[keep]] - features[train.second[keep]]
    target, weight = train.target[keep], train.weight[keep]
    found = np.zeros(features.shape[1])
    for _ in range(NEWTON_STEPS):
        predicted = expit(difference @ found)
        gradient = difference.T @ (weight * (target - predicted)) - RIDGE * found
        curvature: Reals = difference.T @ (difference * (weight * predicted * (1 - predicted))[:, None])
        found += np.linalg.solve(curvature + RIDGE * np.eye(len(found)), gradient)
    return found


def _spread_out(count: int) -> Ints:
    return np.unique(np.linspace(0, count - 1, min(count, MAX_PAIRS)).astype(np.int64)) if count else np.zeros(0, int)


def _standardised(features: Reals) -> Reals:
    deviation = features.std(axis=0)
    scaled: Reals = (features - features.mean(axis=0)) / np.where(deviation > 1e-9, deviation, 1.0)
    return scaled
