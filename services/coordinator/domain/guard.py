"""The over-optimisation guard: does the reward model see progress where the true milestones see decline?

Pure: rows in, verdict out; it keeps no memory, so any coordinator reaches the same verdict from the same cards.

Usage, when the next epoch's reward model is chosen:

    verdict = watch(evidence(newest_card, truth))
    candidates = [card for card in cards if card.epoch not in verdict.suspects]

`truth` maps an epoch to its true progress, e.g. the mean number of milestones an episode reached (the trainer's
finished.json); epochs it lacks fall back to the milestones of the judged segments that the card itself counts.
The newest card is the yardstick for all epochs, because scores of different models are not comparable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.contracts.card import RewardModelCard

PATIENCE: Final = 2
"""Epochs in a row that must diverge. One is noise; with three, the policy follows the wrong model for too long."""

MIN_RISE: Final = 0.05
"""Standard deviations of the score. Below it a rise is re-estimation, not optimisation."""

MIN_FALL: Final = 0.02
"""Share of the best true progress so far that must be lost. A smaller value mistakes chance for decline."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One epoch: mean score of its segments under the yardstick model, and its true progress (higher is better)."""

    epoch: int
    model_score: float
    truth: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """`alarm`: the newest epochs diverge. `suspects`: epochs whose reward models must not shape, now or later.

    `reason` is one sentence for people, empty without an alarm.
    """

    alarm: bool
    suspects: frozenset[int]
    reason: str


def evidence(card: RewardModelCard, truth: Mapping[int, float]) -> list[Evidence]:
    """The rows of a card, oldest first; epochs without any true figure are left out, not guessed."""
    rows = []
    for row in sorted(card.epochs, key=lambda row: row.epoch):
        progress = truth.get(row.epoch, row.milestones)
        if progress is not None:
            rows.append(Evidence(row.epoch, row.model_score, progress))
    return rows


def watch(
    rows: Sequence[Evidence], *, patience: int = PATIENCE, min_rise: float = MIN_RISE, min_fall: float = MIN_FALL
) -> Verdict:
    """Judge the rows of all epochs, oldest first.

    When the score rose and the truth fell in `patience` epochs in a row, every model from the one that shaped the
    first of them to the one trained on the last is suspect. They stay so while these epochs are among the rows; a
    model trained on a later epoch, in which the two agree again, is not.
    """
    suspects: set[int] = set()
    streak = 0
    for index in range(1, len(rows)):
        streak = streak + 1 if _diverges(rows, index, min_rise, min_fall) else 0
        if streak >= patience:
            suspects |= {row.epoch for row in rows[index - streak : index + 1]}
    alarm = streak >= patience
    return Verdict(alarm, frozenset(suspects), _reason(rows[-1 - streak :]) if alarm else "")


def _diverges(rows: Sequence[Evidence], index: int, min_rise: float, min_fall: float) -> bool:
    before, after = rows[index - 1], rows[index]
    best = max(abs(row.truth) for row in rows[: index + 1])
    rises = after.model_score - before.model_score > min_rise
    return rises and before.truth - after.truth > min_fall * best


def _reason(rows: Sequence[Evidence]) -> str:
    first, last = rows[0], rows[-1]
    return (
        f"From epoch {first.epoch} to {last.epoch} the reward model's score rose from {first.model_score:.2f} to "
        f"{last.model_score:.2f}, while true progress fell from {first.truth:.2f} to {last.truth:.2f}: "
        f"reward models since epoch {first.epoch} are not used."
    )
