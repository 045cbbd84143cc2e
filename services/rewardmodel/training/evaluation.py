"""Evaluates an ensemble on held-out pairs and on the states of the newest epoch. Numpy only.

Shapes: M members, n segments, S states per segment, P pairs.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from services.rewardmodel.domain import folds
from services.rewardmodel.domain.dataset import STORED_STEPS, SegmentDataset
from services.rewardmodel.domain.metrics import HeldoutPairs, ScoreSpread
from services.rewardmodel.domain.preferences import (
    Ints,
    PairingConfig,
    PreferencePairs,
    RatingArrays,
    Reals,
    join_pairs,
    sample_pairs,
)
from shared.contracts.card import EpochScore, Pooling
from shared.rewardnet import Floats, RewardNet, RewardWeights

SENSITIVITY_STATES: Final = 1_024  # one forward pass for each input over them takes about a second
MAX_EPOCH_SCORES: Final = 100


def state_scores(weights: RewardWeights, states: Floats) -> Floats:
    """Standardised scores (M, n, S) of states (n, S, D)."""
    flat = RewardNet(weights).forward(states.reshape(-1, states.shape[-1]))
    return flat.reshape(weights.members, *states.shape[:2])


def segment_scores(scores: Floats, pooling: Pooling) -> Floats:
    """Segment scores (M, n) from state scores (M, n, S)."""
    pooled: Floats = scores[:, :, -1] - scores[:, :, 0] if pooling == "gain" else scores.mean(axis=2)
    return pooled


def pairs_by_fold(
    rated: RatingArrays, fold: Ints, count: int, seed: int, config: PairingConfig
) -> list[PreferencePairs]:
    """Held-out pairs of each of `count` folds."""
    return [
        sample_pairs(rated, folds.rows_of(fold, one), np.random.default_rng([seed, 1, one]), config)
        for one in range(count)
    ]


def join_folds(pairs: list[PreferencePairs], margins: list[Reals], value: Reals) -> HeldoutPairs:
    """Join the pairs of all folds and the margins predicted for them; `value` is (n,)."""
    return HeldoutPairs(
        pairs=join_pairs(pairs),
        margin=np.concatenate(margins),
        fold=np.concatenate([np.full(len(p), one) for one, p in enumerate(pairs)]),
        value=value,
    )


def heldout_margins(scores: Floats, pairs: list[PreferencePairs]) -> list[Reals]:
    """Margins of each fold's pairs by the member that the fold is held out from; `scores` is (M, n)."""
    margins = []
    for fold, fold_pairs in enumerate(pairs):
        member = scores[fold].astype(np.float64)
        margins.append(member[fold_pairs.first] - member[fold_pairs.second])
    return margins


def heldout_scores(scores: Floats, fold: Ints) -> Reals:
    """Score (n,) of each segment by the member that its fold is held out from; `scores` is (M, n), `fold` (n,)."""
    return scores[fold, np.arange(len(fold))].astype(np.float64)


def permutation_sensitivity(weights: RewardWeights, states: Floats, names: list[str], seed: int) -> dict[str, float]:
    """Per feature, the mean change of a state's score when the feature takes another state's value.

    A permutation importance (Breiman 2001). `states` is (n, S, D); the result is sorted, largest first.
    """
    rng = np.random.default_rng([seed, 2])
    flat = states.reshape(-1, states.shape[-1])
    sample = flat[rng.permutation(len(flat))[:SENSITIVITY_STATES]]
    net = RewardNet(weights)
    before = net.forward(sample).mean(axis=0)
    sensitivity = {}
    for column in np.flatnonzero(weights.input_scale):
        permuted = sample.copy()
        permuted[:, column] = permuted[rng.permutation(len(sample)), column]
        change = np.abs(net.forward(permuted).mean(axis=0) - before).mean()
        sensitivity[names[column]] = round(float(change), 4)
    return dict(sorted(sensitivity.items(), key=lambda item: -item[1]))


def score_spread(scores: Floats, rows: Ints) -> ScoreSpread | None:
    """Spread over the segments `rows`, from state scores (M, n, S); None without segments."""
    if not len(rows):
        return None
    mean = scores[:, rows].mean(axis=0)
    return ScoreSpread(float(mean.std()), float((np.abs(mean) > 2.0).mean()))


def epoch_scores(data: SegmentDataset, scores: Floats) -> list[EpochScore]:
    """One row per epoch, for the newest hundred epochs, from state scores (M, n, S)."""
    rows = []
    for epoch in np.unique(data.epoch)[-MAX_EPOCH_SCORES:]:
        here = np.flatnonzero(data.epoch == epoch)
        reached = [data.milestones[here][data.episode[here] == e].max() for e in np.unique(data.episode[here])]
        rows.append(
            EpochScore(
                epoch=int(epoch),
                segments=len(here),
                model_score=float(scores[:, here].mean()),
                judge_score=float(np.clip(data.rated.value[here].mean(), 0, 1)),
                milestones=float(np.mean(reached)),
            )
        )
    return rows


def pooled_states(data: SegmentDataset, pooling: Pooling, visible: NDArray[np.bool_]) -> Reals:
    """Features (n, D) of the linear baseline: the states that the network reads, 0 where not `visible` (D,)."""
    if pooling == "gain":
        pooled: Reals = (data.states[:, STORED_STEPS - 1] - data.states[:, 0]).astype(np.float64)
    else:
        pooled = data.states.mean(axis=1, dtype=np.float64)
    return pooled * visible
