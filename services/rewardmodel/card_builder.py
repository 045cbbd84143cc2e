"""Builds the card of a reward model from its measurements and its context."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.rewardmodel.domain.completeness import OutcomeCounts
from services.rewardmodel.domain.metrics import Reliability
from services.rewardmodel.domain.ratings import data_digest
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training_protocol import TrainingReport, TrainingResult
from services.rewardmodel.training_runner import TrainingData
from shared.contracts.base import sha256
from shared.contracts.card import Calibration, ComparedPairs, RewardModelCard
from shared.contracts.epoch import RewardModelRef
from shared.contracts.ids import Digest, RunId
from shared.rewardnet import RewardWeights
from shared.store import keys


@dataclass(frozen=True)
class CardContext:
    """The facts on a card that are not measured by the training."""

    run: RunId
    epoch: int
    outcomes: OutcomeCounts
    history: Sequence[RewardModelRef]
    group: RewardModelGroup
    created: datetime


def build_card(
    context: CardContext, data: TrainingData, result: TrainingResult, weights: RewardWeights
) -> RewardModelCard:
    """Build the card of a model trained on these data; `weights` is the content of its file."""
    digest, report, ratings = sha256(result.weights), result.report, data.ratings
    return RewardModelCard(
        run=context.run,
        epoch=context.epoch,
        observation=weights.observation,
        weights_key=keys.reward_model_weights(context.run, context.epoch, digest),
        weights_digest=Digest(digest),
        data_digest=data_digest(ratings),
        ensemble=weights.members,
        segments=len(ratings),
        capacity=context.group.capacity,
        new_share=context.group.new_share,
        labels=data.source,
        pairs_train=report.pairs_train,
        pairs_heldout=report.pairs_heldout,
        compared=_compared(data, report),
        accuracy=report.accuracy,
        baselines=report.baselines,
        calibration=_calibration(report.reliability),
        rank_correlation=report.rank_correlation,
        sensitivity=report.sensitivity,
        spread=report.spread.deviation if report.spread else None,
        gates_passed=all(report.gates.values()),
        gates=report.gates,
        thresholds=context.group.gates.model_dump(),
        seconds=round(result.seconds, 3),
        created=context.created,
        seed=data.seed,
        pooling=context.group.pooling,
        fit=result.fit,
        validation_loss=result.validation_loss,
        episodes=len({rating.episode for rating in ratings}),
        outcomes=context.outcomes.counts(),
        epochs=report.epochs,
        outside=report.spread.outside if report.spread else None,
        disagreement=weights.disagreement,
        masked=list(context.group.hidden),
        history=list(context.history),
        notes=report.notes,
    )


def _compared(data: TrainingData, report: TrainingReport) -> ComparedPairs:
    pairs, figures = data.compared, report.compared
    return ComparedPairs(
        train=figures.train,
        ties=pairs.ties,
        unused=pairs.unused,
        abstained=pairs.abstained,
        heldout=figures.heldout,
        accuracy=figures.accuracy,
        digest=pairs.digest,
    )


def _calibration(reliability: Reliability | None) -> Calibration | None:
    if reliability is None:
        return None
    return Calibration(temperature=reliability.temperature, ece=reliability.ece, brier=reliability.brier)
