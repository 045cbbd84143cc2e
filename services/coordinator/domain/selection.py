"""Which reward model shapes the next epoch: the newest one whose card passed every gate, or none.

Falling back to an older model when the newest fails its gates is the rollback; it needs no memory of its own.
"""

from collections.abc import Sequence

from services.coordinator.domain.view import Committed, EpochView
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import RewardModelRef
from shared.contracts.run import RunConfig


def last_good(epochs: Sequence[EpochView], config: RunConfig) -> RewardModelRef | None:
    """The reward model for the epoch that follows `epochs`; None without shaping or without a model that passed."""
    if config.shaping.mode == "none":
        return None
    for epoch in reversed(epochs):
        if epoch.card is not None and usable(epoch.card.document, config):
            return reference(epoch.card)
    return None


def usable(card: RewardModelCard, config: RunConfig) -> bool:
    """Whether the card's gates passed and the model reads the observation that this run's policy sees."""
    return card.gates_passed and card.observation == config.observation


def reference(card: Committed[RewardModelCard]) -> RewardModelRef:
    """The name under which the trainer gets the model: both digests, so that it loads exactly what was judged."""
    return RewardModelRef.model_validate(
        {
            "epoch": card.document.epoch,
            "weights_key": card.document.weights_key,
            "weights_digest": card.document.weights_digest,
            "card_key": card.key,
            "card_digest": card.digest,
        }
    )
