"""Writes the card: what was measured, in the form that others read. Decides nothing."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from services.rewardmodel.domain.completeness import Outcomes
from services.rewardmodel.domain.ratings import Rating
from shared.contracts.base import sha256
from shared.contracts.card import Calibration, RewardModelCard
from shared.contracts.epoch import RewardModelRef
from shared.contracts.ids import Digest, RunId
from shared.store import keys

if TYPE_CHECKING:  # these modules load torch
    from services.rewardmodel.training.report import Report
    from services.rewardmodel.training.train import Trained


@dataclass(frozen=True)
class Circumstances:
    """What the card says besides the measurements."""

    run: RunId
    epoch: int
    outcomes: Outcomes
    history: Sequence[RewardModelRef]
    masked: Sequence[str]
    seconds: float
    created: datetime


def data_digest(ratings: Sequence[Rating]) -> Digest:
    """SHA-256 over the sorted digests of the score objects: which votes a model was made of."""
    return Digest(hashlib.sha256("".join(sorted(rating.score_digest for rating in ratings)).encode()).hexdigest())


def card_of(
    about: Circumstances, ratings: Sequence[Rating], trained: "Trained", report: "Report", weights: bytes
) -> RewardModelCard:
    """The card of a model whose weights file is `weights`, trained on these ratings."""
    digest = sha256(weights)
    found = report.reliability
    return RewardModelCard(
        run=about.run,
        epoch=about.epoch,
        observation=trained.weights.observation,
        weights_key=keys.reward_model_weights(about.run, about.epoch, digest),
        weights_digest=Digest(digest),
        data_digest=data_digest(ratings),
        ensemble=trained.weights.members,
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
        seconds=about.seconds,
        created=about.created,
        pooling=trained.problem.rules.pooling,
        fit=trained.fit,
        validation_loss=trained.validation_loss,
        episodes=len({rating.episode for rating in ratings}),
        outcomes=about.outcomes.counts(),
        epochs=report.epochs,
        outside=report.spread.outside if report.spread else None,
        disagreement=trained.weights.disagreement,
        masked=list(about.masked),
        history=list(about.history),
        notes=report.notes,
    )
