"""The learning curve of one trial, and the scores that a study compares.

Every score comes from evaluation episodes with sampled actions, from the true start.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.contracts.driver import SUGGESTION_OUTCOMES, SuggestionOutcome

MEASURE: Final = "evaluation/milestones_share_mean"
FINISHED: Final = "evaluation/finished_mean"
BEST_EPISODE: Final = "evaluation/milestones_max"
LABEL_ACCURACY: Final = "labels/accuracy"
SUGGESTIONS: Final = "suggestions/"
LAST: Final = 3  # evaluations at the end that count; a single one is noise of seven episodes
SUCCESS: Final = 0.9  # share of successful episodes from which a world counts as finished
DIGITS: Final = 4


class Curve(BaseModel):
    """One value per evaluation. `share` is the share of the world's milestones, `finished` that of episodes with all.

    `shaped` counts the epochs that a reward model shaped. `label_accuracy` is the share of pairs of labelled segments
    that differ in milestones gained and that the labels order rightly; None without labels, and in older trials.
    `suggestions` counts those of all epochs by outcome; None without guidance. `most` is the number of milestones that
    the best episode of each evaluation had; None in older trials.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    steps: tuple[int, ...] = Field(min_length=1)
    share: tuple[float, ...]
    finished: tuple[float, ...]
    shaped: int = 0
    label_accuracy: float | None = None
    suggestions: dict[SuggestionOutcome, int] | None = None
    most: tuple[int, ...] | None = None

    @model_validator(mode="after")
    def _equal_lengths(self) -> Self:
        if not len(self.steps) == len(self.share) == len(self.finished) == len(self.most or self.steps):
            raise ValueError("steps, share, finished and most differ in length")
        return self

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]]) -> Self:
        """Build it from a trial's rows of metrics; epochs without an evaluation are omitted."""
        seen = [row for row in rows if MEASURE in row]
        return cls(
            steps=tuple(int(row["steps"]) for row in seen),
            share=tuple(round(row[MEASURE], DIGITS) for row in seen),
            finished=tuple(round(row.get(FINISHED, 0.0), DIGITS) for row in seen),
            shaped=int(sum(row["shaped"] for row in rows)),
            label_accuracy=next((round(row[LABEL_ACCURACY], DIGITS) for row in rows if LABEL_ACCURACY in row), None),
            suggestions=_suggestions(rows),
            most=tuple(int(row[BEST_EPISODE]) for row in seen) if all(BEST_EPISODE in row for row in seen) else None,
        )

    @property
    def speed(self) -> float:
        """Mean share over all evaluations (area under the curve): high for learning early and keeping it."""
        return float(np.mean(self.share))

    @property
    def final(self) -> float:
        """Mean share over the last three evaluations."""
        return float(np.mean(self.share[-LAST:]))

    @property
    def finished_at_end(self) -> float:
        """Share of episodes that reach every milestone, over the last three evaluations."""
        return float(np.mean(self.finished[-LAST:]))

    @property
    def finished_after(self) -> int | None:
        """Steps at the first evaluation that finishes the world, or None."""
        return next((steps for steps, share in zip(self.steps, self.finished, strict=True) if share >= SUCCESS), None)

    def reached_after(self, milestones: int) -> int | None:
        """Steps at the first evaluation in which an episode had this many milestones, or None."""
        evaluations = zip(self.steps, self.most or [0] * len(self.steps), strict=True)
        return next((steps for steps, most in evaluations if most >= milestones), None)


def _suggestions(rows: Sequence[dict[str, Any]]) -> dict[SuggestionOutcome, int] | None:
    """The sums over all epochs; None if no epoch had guidance."""
    guided = [row for row in rows if f"{SUGGESTIONS}taken" in row]
    sums = {name: int(sum(row[f"{SUGGESTIONS}{name}"] for row in guided)) for name in SUGGESTION_OUTCOMES}
    return sums if guided else None


SCORES: Final[dict[str, Callable[[Curve], float]]] = {
    "speed": lambda curve: curve.speed,
    "final": lambda curve: curve.final,
    "finished": lambda curve: curve.finished_at_end,
}
TITLES: Final = {"speed": "learning speed", "final": "final", "finished": "finished"}
