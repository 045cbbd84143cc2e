"""Builds the measured part of a card: held-out figures, baselines, gates and notes for the reader."""

from collections.abc import Callable, Sequence

import numpy as np

from services.rewardmodel.domain.baselines import linear_margins, step_features
from services.rewardmodel.domain.compared_pairs import heldout_accuracy, heldout_pairs
from services.rewardmodel.domain.dataset import SegmentDataset
from services.rewardmodel.domain.gates import GateInputs, GateThresholds, evaluate_gates
from services.rewardmodel.domain.metrics import (
    HeldoutPairs,
    accuracy,
    bootstrap_interval,
    measure_reliability,
    rank_correlation,
)
from services.rewardmodel.domain.preferences import PairBlocks, PreferencePairs, Reals
from services.rewardmodel.training import evaluation
from services.rewardmodel.training.shuffled_labels import shuffled_accuracy
from services.rewardmodel.training.train import TrainedEnsemble, TrainingTask
from services.rewardmodel.training_protocol import ComparedFigures, TrainingReport
from shared.contracts.card import PairAccuracy


def build_report(
    task: TrainingTask,
    trained: TrainedEnsemble,
    epoch: int,
    quorum: bool,
    names: Sequence[str],
    thresholds: GateThresholds,
    should_cancel: Callable[[], bool],
) -> TrainingReport:
    """Evaluate each segment with the member that its episode is held out from. `names` (D,) are the features'.

    Raises TrainingCancelled soon after `should_cancel()` returns True.
    """
    data, weights, problem = task.data, trained.weights, trained.problem
    scores = evaluation.state_scores(weights, data.states)
    segment_scores = evaluation.segment_scores(scores, problem.config.pooling)
    pairs = evaluation.pairs_by_fold(data.rated, data.fold, weights.members, task.seed, problem.config.pairs)
    heldout = evaluation.join_folds(pairs, evaluation.heldout_margins(segment_scores, pairs), data.rated.value)
    pair_accuracy = _pair_accuracy(heldout, data, task.seed)
    baselines = {
        **_regression_baselines(data, trained, pairs),
        "shuffled_labels": shuffled_accuracy(problem, should_cancel),
    }
    spread = evaluation.score_spread(scores, np.flatnonzero(data.epoch == epoch))
    inputs = GateInputs(
        accuracy_confident=pair_accuracy.confident,
        accuracy_all=pair_accuracy.all,
        confident_pairs=pair_accuracy.pairs,
        episodes=data.episodes,
        baselines=baselines,
        reliability=measure_reliability(heldout),
        spread=spread.deviation if spread else None,
        quorum=quorum,
    )
    heldout_scores = evaluation.heldout_scores(segment_scores, data.fold)
    sensitivity = evaluation.permutation_sensitivity(weights, data.states, list(names), task.seed) if len(data) else {}
    return TrainingReport(
        accuracy=pair_accuracy,
        pairs_train=_distinct_pairs(trained.blocks),
        pairs_heldout=len(heldout.pairs),
        baselines=baselines,
        reliability=inputs.reliability,
        rank_correlation=rank_correlation(heldout_scores, data.rated.value, data.fold),
        sensitivity=sensitivity,
        spread=spread,
        epochs=evaluation.epoch_scores(data, scores),
        gates=evaluate_gates(inputs, thresholds),
        notes=_notes(inputs, trained, thresholds),
        compared=_compared(data, trained, heldout_scores),
    )


def _pair_accuracy(heldout: HeldoutPairs, data: SegmentDataset, seed: int) -> PairAccuracy:
    confident = heldout.pairs.confident
    low, high = bootstrap_interval(heldout, data.episode, np.random.default_rng([seed, 7])) or (None, None)
    return PairAccuracy(
        confident=accuracy(heldout.hits, confident),
        all=accuracy(heldout.hits, heldout.untied),
        pairs=int(confident.sum()),
        low=low,
        high=high,
    )


def _regression_baselines(
    data: SegmentDataset, trained: TrainedEnsemble, pairs: list[PreferencePairs]
) -> dict[str, float | None]:
    """Logistic regressions, fitted on each member's training pairs and evaluated on its held-out fold."""
    features = {
        "step_index": step_features(data.first_step, data.steps),
        "linear": evaluation.pooled_states(data, trained.problem.config.pooling, trained.weights.input_scale > 0),
    }
    return {name: _regression_accuracy(values, data, trained.blocks, pairs) for name, values in features.items()}


def _regression_accuracy(
    features: Reals, data: SegmentDataset, blocks: Sequence[PairBlocks | None], pairs: list[PreferencePairs]
) -> float | None:
    margins = [
        linear_margins(features, block.flatten(), fold_pairs) if block is not None else np.zeros(len(fold_pairs))
        for block, fold_pairs in zip(blocks, pairs, strict=True)
    ]
    heldout = evaluation.join_folds(pairs, margins, data.rated.value)
    return accuracy(heldout.hits, heldout.pairs.confident)


def _compared(data: SegmentDataset, trained: TrainedEnsemble, heldout_scores: Reals) -> ComparedFigures:
    """The figures of the pairs that a judge compared directly; none where ratings alone are labels."""
    problem = trained.problem
    if problem.config.labels == "ratings":
        return ComparedFigures()
    pairs = heldout_pairs(data.compared, data.fold)
    trained_on = [problem.compared_by(member) for member in range(problem.config.members)]
    return ComparedFigures(_distinct(trained_on), len(pairs), heldout_accuracy(pairs, heldout_scores))


def _distinct_pairs(blocks: Sequence[PairBlocks | None]) -> int:
    """Number of pairs that trained at least one member; members share pairs."""
    return _distinct([block.flatten() for block in blocks if block is not None])


def _distinct(by_member: Sequence[PreferencePairs]) -> int:
    if not by_member:
        return 0
    low = np.concatenate([np.minimum(pairs.first, pairs.second) for pairs in by_member])
    high = np.concatenate([np.maximum(pairs.first, pairs.second) for pairs in by_member])
    return len(np.unique(low * (int(high.max(initial=0)) + 1) + high))


def _notes(inputs: GateInputs, trained: TrainedEnsemble, thresholds: GateThresholds) -> list[str]:
    idle = sum(block is None or not block.pairs for block in trained.blocks)
    few_data = inputs.confident_pairs < thresholds.pairs or inputs.episodes < thresholds.episodes
    notes = (
        (trained.fit == "none", "There are no two labelled segments to compare: the model scores every state 0."),
        (
            few_data,
            f"The data are few ({inputs.episodes} episodes, {inputs.confident_pairs} confident held-out pairs): "
            "the figures on this card are rough.",
        ),
        (
            trained.fit != "none" and not trained.validation_loss,
            "There are no validation episodes: training stopped after a fixed number of steps.",
        ),
        (0 < idle < len(trained.blocks), f"{idle} members have no training pairs and score every state 0."),
        (not inputs.quorum, "Too few of the epoch's segments were judged: see `outcomes`."),
    )
    return [note for applies, note in notes if applies]
