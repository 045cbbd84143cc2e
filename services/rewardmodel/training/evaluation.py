"""Measures an ensemble on what each member did not see, and on the states of the newest epoch. Numpy only."""

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
    sample_pairs,
)
from shared.contracts.card import EpochScore, Pooling
from shared.rewardnet import WIDTH, Floats, RewardNet, RewardWeights

SENSITIVITY_STATES = 1_024  # 128 forward passes over them take about a second


def state_scores(weights: RewardWeights, states: Floats) -> Floats:
    """Standardised scores (M, n, S) of states (n, S, 128)."""
    flat = RewardNet(weights).forward(states.reshape(-1, WIDTH))
    return flat.reshape(weights.members, *states.shape[:2])


def segment_scores(scores: Floats, pooling: Pooling) -> Floats:
    """Segment scores (M, n) from state scores (M, n, S)."""
    pooled: Floats = scores[:, :, -1] - scores[:, :, 0] if pooling == "gain" else scores.mean(axis=2)
    return pooled


def pairs_by_fold(
    rated: RatingArrays, fold: Ints, count: int, seed: int, config: PairingConfig
) -> list[PreferencePairs]:
    """Held-out pairs of each fold."""
    return [
        sample_pairs(rated, folds.rows_of(fold, one), np.random.default_rng([seed, 1, one]), config)
        for one in range(count)
    ]


def heldout(pairs: list[PreferencePairs], margins: list[Reals], value: Reals) -> HeldoutPairs:
    """The pairs of all folds with the margins predicted for them."""
    return HeldoutPairs(
        pairs=PreferencePairs(
            first=np.concatenate([p.first for p in pairs]),
            second=np.concatenate([p.second for p in pairs]),
            target=np.concatenate([p.target for p in pairs]),
            weight=np.concatenate([p.weight for p in pairs]),
            confident=np.concatenate([p.confident for p in pairs]),
        ),
        margin=np.concatenate(margins),
        fold=np.concatenate([np.full(len(p), one) for one, p in enumerate(pairs)]),
        value=value,
    )


def crossed_margins(scores: Floats, pairs: list[PreferencePairs]) -> list[Reals]:
    """Margins of each fold's pairs by the member that saw nothing of that fold; `scores` is (M, n)."""
    found = []
    for one, chosen in enumerate(pairs):
        member = scores[one].astype(np.float64)
        found.append(member[chosen.first] - member[chosen.second])
    return found


def own_scores(scores: Floats, fold: Ints) -> Reals:
    """Score (n,) of each segment by the member that did not see its fold; `scores` is (M, n)."""
    return scores[fold, np.arange(len(fold))].astype(np.float64)


def sensitivity(weights: RewardWeights, states: Floats, names: list[str], seed: int) -> dict[str, float]:
    """Per feature, how far the mean score of a state moves when the feature takes another state's value."""
    rng = np.random.default_rng([seed, 2])
    flat = states.reshape(-1, WIDTH)
    sample = flat[rng.permutation(len(flat))[:SENSITIVITY_STATES]]
    net = RewardNet(weights)
    before = net.forward(sample).mean(axis=0)
    found = {}
    for place in np.flatnonzero(weights.input_scale):
        changed = sample.copy()
        changed[:, place] = changed[rng.permutation(len(sample)), place]
        found[names[place]] = round(float(np.abs(net.forward(changed).mean(axis=0) - before).mean()), 4)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def spread(scores: Floats, rows: Ints) -> ScoreSpread | None:
    """Spread over the segments `rows`, from state scores (M, n, S); None without segments."""
    if not len(rows):
        return None
    mean = scores[:, rows].mean(axis=0)
    return ScoreSpread(float(mean.std()), float((np.abs(mean) > 2.0).mean()))


def epoch_rows(data: SegmentDataset, scores: Floats) -> list[EpochScore]:
    """One row per epoch in the data, from state scores (M, n, S); the newest hundred."""
    rows = []
    for epoch in np.unique(data.epoch)[-100:]:
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


def pooled_states(data: SegmentDataset, pooling: Pooling, seen: NDArray[np.bool_]) -> Reals:
    """What a linear baseline sees of a segment (n, 128): the network's states and features, 0 where not `seen`."""
    if pooling == "gain":
        pooled: Reals = (data.states[:, STORED_STEPS - 1] - data.states[:, 0]).astype(np.float64)
    else:
        pooled = data.states.mean(axis=1, dtype=np.float64)
    return pooled * seen
