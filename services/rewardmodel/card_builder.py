"""Writes the card: what was measured, in the form that others read. Decides nothing."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.rewardmodel.domain.completeness import OutcomeCounts
from services.rewardmodel.domain.ratings import Rating
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training_protocol import TrainingResult
from shared.contracts.base import sha256
from shared.contracts.card import Calibration, RewardModelCard
from shared.contracts.epoch import RewardModelRef
from shared.contracts.ids import Digest, RunId
from shared.rewardnet import RewardWeights
from shared.store import keys


@dataclass(frozen=True)
class CardContext:
    """What the card says besides the measurements."""

    run: RunId
    epoch: int
    outcomes: OutcomeCounts
    history: Sequence[RewardModelRef]
    group: RewardModelGroup
    created: datetime


def data_digest(ratings: Sequence[Rating]) -> Digest:
    """SHA-256 over the sorted digests of the score objects: which votes a model was made of."""
    return Digest(hashlib.sha256("".join(sorted(rating.score_digest for rating in ratings)).encode()).hexdigest())


def build_card(
    about: CardContext, ratings: Sequence[Rating], result: TrainingResult, weights: RewardWeights
) -> RewardModelCard:
    """The card of a model trained on these ratings; `weights` are what its file holds."""
    digest, report = sha256(result.weights), result.report
    found = report.reliability
    return RewardModelCard(
        run=about.run,
        epoch=about.epoch,
        observation=weights.observation,
        weights_key=keys.reward_model_weights(about.run, about.epoch, digest),
        weights_digest=Digest(digest),
        data_digest=data_digest(ratings),
        ensemble=weights.members,
        segments=len(ratings),
        pairs_train=report.pairs_train,
        pairs_heldout=report.pairs_heldout,
        accuracy=report.accuracy,
        baselines=report.baselines,
        calibration=Calibration(temperature=found.temperature, ece=found.ece, brier=found.brier) if found else None,
        rank_correlation=report.rank_correlation,
        sensitivity=report.sensitivity,
        spread=report.spread.deviation if report.spread else None,
        gates_passed=all(report.gates.values()),
        gates=report.gates,
        seconds=round(result.seconds, 3),
        created=about.created,
        pooling=about.group.pooling,
        fit=result.fit,
        validation_loss=result.validation_loss,
        episodes=len({rating.episode for rating in ratings}),
        outcomes=about.outcomes.counts(),
        epochs=report.epochs,
        outside=report.spread.outside if report.spread else None,
        disagreement=weights.disagreement,
        masked=list(about.group.masked),
        history=list(about.history),
        notes=report.notes,
    )
