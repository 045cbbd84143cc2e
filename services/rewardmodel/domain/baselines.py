"""The baselines that a reward model must beat: the step index, and a linear model.

A model that only measures time, or only weighs features, needs no network. If a baseline predicts the judges equally
well, the network has learnt nothing more. Both are logistic regressions on feature differences, which is Bradley-Terry
with a linear score.
"""

from typing import Final

import numpy as np
from scipy.special import expit

from services.rewardmodel.domain.preferences import Ints, PreferencePairs, Reals

NEWTON_STEPS: Final = 12
RIDGE: Final = 1.0  # on weights of standardised features, in pairs: without it separable data have no optimum
MAX_PAIRS: Final = 20_000  # more change the weights of the features too little to notice


def step_features(first_step: Reals, steps: Reals) -> Reals:
    """Features (n, 4) of a segment's position in its episode: linear, quadratic, and with early steps emphasised.

    `first_step` and `steps` are (n,), in steps.
    """
    middle = (first_step + steps / 2) / max(float((first_step + steps).max(initial=1.0)), 1.0)
    return np.stack([middle, middle**2, np.sqrt(middle), np.log1p(10 * middle)], axis=1)


def linear_margins(features: Reals, train: PreferencePairs, test: PreferencePairs) -> Reals:
    """Margins (P,) of the `test` pairs under weights fitted on the `train` pairs; `features` is (n, d)."""
    weights = fit_linear(_standardised(features), train)
    margins: Reals = (_standardised(features)[test.first] - _standardised(features)[test.second]) @ weights
    return margins


def fit_linear(features: Reals, train: PreferencePairs) -> Reals:
    """Weights (d,) of the logistic regression of the soft labels on feature differences, by Newton's method."""
    keep = _evenly_spaced(len(train))
    difference = features[train.first[keep]] - features[train.second[keep]]
    target, weight = train.target[keep], train.weight[keep]
    weights = np.zeros(features.shape[1])
    for _ in range(NEWTON_STEPS):
        predicted = expit(difference @ weights)
        gradient = difference.T @ (weight * (target - predicted)) - RIDGE * weights
        curvature: Reals = difference.T @ (difference * (weight * predicted * (1 - predicted))[:, None])
        weights += np.linalg.solve(curvature + RIDGE * np.eye(len(weights)), gradient)
    return weights


def _evenly_spaced(count: int) -> Ints:
    """At most MAX_PAIRS positions among `count`."""
    return np.unique(np.linspace(0, count - 1, min(count, MAX_PAIRS)).astype(np.int64)) if count else np.zeros(0, int)


def _standardised(features: Reals) -> Reals:
    deviation = features.std(axis=0)
    scaled: Reals = (features - features.mean(axis=0)) / np.where(deviation > 1e-9, deviation, 1.0)
    return scaled
