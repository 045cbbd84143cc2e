"""Which reward model shapes the next epoch: the newest that passed every gate and is not suspect, or none.

Falling back to an older model when the newest fails its gates, or praises what is worse, is the rollback; it needs no
memory of its own, because it follows from the cards.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from services.coordinator.domain.guard import Verdict, evidence, watch
from services.coordinator.domain.view import Committed, EpochView
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import RewardModelRef
from shared.contracts.run import RunConfig
from shared.game.layout import VERSION

TRUTH: Final = "milestones_mean"  # the trainer's metric of true progress: milestones an episode reached


def last_good(epochs: Sequence[EpochView], config: RunConfig) -> RewardModelRef | None:
    """The reward model for the epoch that follows `epochs`; None without shaping or without a model that may."""
    if config.shaping.mode == "none":
        return None
    suspects = verdict(epochs).suspects
    for epoch in reversed(epochs):
        if epoch.card is not None and epoch.epoch not in suspects and usable(epoch.card.document):
            return reference(epoch.card)
    return None


def usable(card: RewardModelCard) -> bool:
    """Whether the card's gates passed and the model reads what segments hold: obs/v1, whatever the policy sees."""
    return card.gates_passed and card.observation == VERSION


def verdict(epochs: Sequence[EpochView]) -> Verdict:
    """What the guard against over-optimisation says, with the newest card as its yardstick.

    One that missed its gates may accuse models, but it acquits none that the newest one that passed had accused.
    """
    cards = [epoch.card.document for epoch in epochs if epoch.card is not None]
    truth = {
        epoch.epoch: epoch.finished.document.metrics[TRUTH]
        for epoch in epochs
        if epoch.finished is not None and TRUTH in epoch.finished.document.metrics
    }
    if not cards:
        return watch([])
    said = watch(evidence(cards[-1], truth))
    passed = next((card for card in reversed(cards) if usable(card)), None)
    if passed is None or passed is cards[-1]:
        return said
    return replace(said, suspects=said.suspects | watch(evidence(passed, truth)).suspects)


def reference(card: Committed[RewardModelCard]) -> RewardModelRef:
    """The name under which the trainer gets the model: both digests, so that it loads exactly what was judged."""
    return card.document.reference(card.key, card.digest)
