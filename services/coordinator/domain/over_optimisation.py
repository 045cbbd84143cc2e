"""Detects over-optimisation: the reward model's score rises while true progress falls (Gao et al., arXiv 2210.10760).

Pure and without memory, so every coordinator gets the same result from the same cards. Usage, when the reward model of
the next epoch is selected:

    result = detect_over_optimisation(evidence_from(newest_card, truth))
    candidates = [card for card in cards if card.epoch not in result.suspects]

`truth` maps an epoch to its true progress, e.g. mean milestones per episode (the trainer's finished.json). Epochs
without a value use the milestones of the judged segments on the card. The newest card scores all epochs, because
scores of different models are not comparable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.contracts.card import RewardModelCard

PATIENCE: Final = 2
"""Consecutive epochs that must diverge. One is noise; with three, the policy follows a wrong model for too long."""

MIN_RISE: Final = 0.05
"""In standard deviations of the score. A smaller rise is re-estimation, not optimisation."""

MIN_FALL: Final = 0.02
"""Share of the best true progress so far. A smaller fall may be chance."""


@dataclass(frozen=True, slots=True)
class EpochEvidence:
    """One epoch: the mean score of its segments by the newest model, and its true progress (higher is better)."""

    epoch: int
    model_score: float
    truth: float


@dataclass(frozen=True, slots=True)
class OverOptimisationResult:
    """`alarm`: the newest epochs diverge. `suspects`: epochs whose reward models must not be used, now or later.

    `reason` is one sentence for users, empty without an alarm.
    """

    alarm: bool
    suspects: frozenset[int]
    reason: str


def evidence_from(card: RewardModelCard, truth: Mapping[int, float]) -> list[EpochEvidence]:
    """The rows of a card, oldest first. Epochs without true progress are left out."""
    rows = []
    for row in sorted(card.epochs, key=lambda row: row.epoch):
        progress = truth.get(row.epoch, row.milestones)
        if progress is not None:
            rows.append(EpochEvidence(row.epoch, row.model_score, progress))
    return rows


def detect_over_optimisation(
    rows: Sequence[EpochEvidence], *, patience: int = PATIENCE, min_rise: float = MIN_RISE, min_fall: float = MIN_FALL
) -> OverOptimisationResult:
    """Check the rows of all epochs, oldest first.

    When the score rises and true progress falls in `patience` consecutive epochs, every model is suspect from the one
    that shaped the first of them to the one trained on the last. It stays suspect. A model trained on a later epoch,
    in which both agree again, is not suspect.
    """
    suspects: set[int] = set()
    streak = 0
    for index in range(1, len(rows)):
        streak = streak + 1 if _diverges(rows, index, min_rise, min_fall) else 0
        if streak >= patience:
            suspects |= {row.epoch for row in rows[index - streak : index + 1]}
    alarm = streak >= patience
    return OverOptimisationResult(alarm, frozenset(suspects), _reason(rows[-1 - streak :]) if alarm else "")


def _diverges(rows: Sequence[EpochEvidence], index: int, min_rise: float, min_fall: float) -> bool:
    before, after = rows[index - 1], rows[index]
    best = max(abs(row.truth) for row in rows[: index + 1])
    rises = after.model_score - before.model_score > min_rise
    return rises and before.truth - after.truth > min_fall * best


def _reason(rows: Sequence[EpochEvidence]) -> str:
    first, last = rows[0], rows[-1]
    return (
        f"From epoch {first.epoch} to {last.epoch} the reward model's score rose from {first.model_score:.2f} to "
        f"{last.model_score:.2f}, while true progress fell from {first.truth:.2f} to {last.truth:.2f}: "
        f"reward models since epoch {first.epoch} are not used."
    )
