"""Selects the reward model of the next epoch: the newest one that passed every gate and is not suspect.

When the newest fails its gates or is suspect, an older one is selected. This is the rollback; it needs no memory,
because it follows from the cards.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from services.coordinator.domain.over_optimisation import (
    OverOptimisationResult,
    detect_over_optimisation,
    evidence_from,
)
from services.coordinator.domain.run_view import EpochView
from shared.contracts.card import REWARD_MODEL_VIEWS, RewardModelCard
from shared.contracts.epoch import RewardModelRef
from shared.contracts.run import RunConfig

TRUE_PROGRESS: Final = "milestones_mean"  # the trainer's metric: mean milestones per episode


def select_reward_model(epochs: Sequence[EpochView], config: RunConfig) -> RewardModelRef | None:
    """The reward model of the epoch after `epochs`; None without shaping or without a usable model."""
    if config.shaping.mode == "none":
        return None
    suspects = check_over_optimisation(epochs).suspects
    for epoch in reversed(epochs):
        if epoch.card is not None and epoch.epoch not in suspects and is_usable(epoch.card.document):
            return epoch.card.document.reference(epoch.card.key, epoch.card.digest)
    return None


def is_usable(card: RewardModelCard) -> bool:
    """Whether the gates passed and trainers of this version know the model's view."""
    return card.gates_passed and card.observation in REWARD_MODEL_VIEWS


def check_over_optimisation(epochs: Sequence[EpochView]) -> OverOptimisationResult:
    """Check all epochs for over-optimisation, with the newest card as the yardstick.

    A newest card that failed its gates can add suspects, but it clears none that the newest passed card found.
    """
    cards = [epoch.card.document for epoch in epochs if epoch.card is not None]
    truth = {
        epoch.epoch: epoch.finished.document.metrics[TRUE_PROGRESS]
        for epoch in epochs
        if epoch.finished is not None and TRUE_PROGRESS in epoch.finished.document.metrics
    }
    if not cards:
        return detect_over_optimisation([])
    result = detect_over_optimisation(evidence_from(cards[-1], truth))
    passed = next((card for card in reversed(cards) if is_usable(card)), None)
    if passed is None or passed is cards[-1]:
        return result
    earlier = detect_over_optimisation(evidence_from(passed, truth))
    return replace(result, suspects=result.suspects | earlier.suspects)
