"""Everything the card says about a trained model: held-out figures, baselines, gates, and what a reader must know."""

from collections.abc import Callable, Sequence

import numpy as np

from services.rewardmodel.domain.baselines import linear_margins, step_features
from services.rewardmodel.domain.dataset import SegmentDataset
from services.rewardmodel.domain.gates import GateInputs, GateThresholds, gates
from services.rewardmodel.domain.metrics import (
    HeldoutPairs,
    accuracy,
    bootstrap_interval,
    rank_correlation,
    reliability,
)
from services.rewardmodel.domain.preferences import PairBlocks, PreferencePairs, Reals
from services.rewardmodel.training import evaluation
from services.rewardmodel.training.shuffled_labels import shuffled_accuracy
from services.rewardmodel.training.train import TrainedEnsemble, TrainingTask
from services.rewardmodel.training_protocol import TrainingReport
from shared.contracts.card import PairAccuracy


def report(
    task: TrainingTask,
    trained: TrainedEnsemble,
    epoch: int,
    quorum: bool,
    names: Sequence[str],
    thresholds: GateThresholds,
    should_cancel: Callable[[], bool],
) -> TrainingReport:
    """Measure `trained` on the data it was trained on, each segment by the member that did not see its episode."""
    data, weights, problem = task.data, trained.weights, trained.problem
    scores = evaluation.state_scores(weights, data.states)
    of_segments = evaluation.segment_scores(scores, problem.config.pooling)
    pairs = evaluation.pairs_by_fold(data.rated, data.fold, weights.members, task.seed, problem.config.pairs)
    held = evaluation.heldout(pairs, evaluation.crossed_margins(of_segments, pairs), data.rated.value)
    sure = held.pairs.confident
    found = _accuracy(held, data, task.seed)
    baselines = {
        **_regressions(data, trained, pairs),
        "shuffled_labels": shuffled_accuracy(problem, should_cancel),
    }
    spread = evaluation.spread(scores, np.flatnonzero(data.epoch == epoch))
    figures = GateInputs(
        accuracy_confident=found.confident,
        accuracy_all=found.all,
        confident_pairs=int(sure.sum()),
        episodes=data.episodes,
        baselines=baselines,
        reliability=reliability(held),
        spread=spread.deviation if spread else None,
        quorum=quorum,
    )
    return TrainingReport(
        accuracy=found,
        pairs_train=_distinct(trained.blocks),
        pairs_heldout=len(held.pairs),
        baselines=baselines,
        reliability=figures.reliability,
        rank_correlation=rank_correlation(evaluation.own_scores(of_segments, data.fold), data.rated.value, data.fold),
        sensitivity=evaluation.sensitivity(weights, data.states, list(names), task.seed) if len(data) else {},
        spread=spread,
        epochs=evaluation.epoch_rows(data, scores),
        gates=gates(figures, thresholds),
        notes=_notes(figures, trained, thresholds),
    )


def _accuracy(held: HeldoutPairs, data: SegmentDataset, seed: int) -> PairAccuracy:
    sure = held.pairs.confident
    low, high = bootstrap_interval(held, data.episode, np.random.default_rng([seed, 7])) or (None, None)
    return PairAccuracy(
        confident=accuracy(held.hits, sure),
        all=accuracy(held.hits, held.untied),
        pairs=int(sure.sum()),
        low=low,
        high=high,
    )


def _regressions(
    data: SegmentDataset, trained: TrainedEnsemble, pairs: list[PreferencePairs]
) -> dict[str, float | None]:
    """Baselines by logistic regression, fitted on each member's training pairs and measured on its held-out fold."""
    features = {
        "step_index": step_features(data.first_step, data.steps),
        "linear": evaluation.pooled_states(data, trained.problem.config.pooling, trained.weights.input_scale > 0),
    }
    return {name: _crossed(values, data, trained.blocks, pairs) for name, values in features.items()}


def _crossed(
    features: Reals, data: SegmentDataset, blocks: Sequence[PairBlocks | None], pairs: list[PreferencePairs]
) -> float | None:
    margins = [
        linear_margins(features, block.flat(), chosen) if block is not None else np.zeros(len(chosen))
        for block, chosen in zip(blocks, pairs, strict=True)
    ]
    held = evaluation.heldout(pairs, margins, data.rated.value)
    return accuracy(held.hits, held.pairs.confident)


def _distinct(blocks: Sequence[PairBlocks | None]) -> int:
    """Pairs that trained at least one member; members share some."""
    seen = [block.flat() for block in blocks if block is not None]
    if not seen:
        return 0
    low = np.concatenate([np.minimum(pairs.first, pairs.second) for pairs in seen])
    high = np.concatenate([np.maximum(pairs.first, pairs.second) for pairs in seen])
    return len(np.unique(low * (int(high.max(initial=0)) + 1) + high))


def _notes(figures: GateInputs, trained: TrainedEnsemble, thresholds: GateThresholds) -> list[str]:
    idle = sum(block is None or not block.pairs for block in trained.blocks)
    return [
        note
        for applies, note in (
            (trained.fit == "none", "There were no two judged segments to compare: the model scores everything 0."),
            (
                figures.confident_pairs < thresholds.pairs or figures.episodes < thresholds.episodes,
                f"The data are few ({figures.episodes} episodes, {figures.confident_pairs} confident held-out pairs): "
                "the figures on this card are rough.",
            ),
            (
                trained.fit != "none" and not trained.validation_loss,
                "No validation episodes: training stopped after a fixed number of steps.",
            ),
            (0 < idle < len(trained.blocks), f"{idle} members had nothing to learn from and score 0."),
            (not figures.quorum, "Too few of the epoch's segments were judged: see `outcomes`."),
        )
        if applies
    ]
