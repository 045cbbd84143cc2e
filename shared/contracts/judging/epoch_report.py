"""Quality and cost of one epoch's judging: written by the judges (`judges.json`), shown in summary.json.

A value that cannot be computed is None.
"""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from shared.contracts.base import Contract
from shared.contracts.events import Epoch, ScoreStatus
from shared.contracts.ids import JudgeName, RunId
from shared.contracts.scores import DimensionName, Usage

Share = Annotated[float, Field(ge=0, le=1)]
Change = Annotated[float, Field(ge=-1, le=1)]


class Correlation(Contract):
    """Spearman's rank correlation of scores with milestones gained, in the segment and in the next ones."""

    segment: Change | None = None
    next: Change | None = None


class JudgeFigures(Contract):
    """One judge in one epoch."""

    judged: int = Field(ge=0)
    abstained: int = Field(ge=0)
    votes: int = Field(ge=0)
    votes_per_segment: float | None = Field(None, ge=0)
    unanimous: Share | None = Field(None, description="share of judged dimensions with unanimous votes")
    alpha: dict[DimensionName, float | None] = Field(
        default_factory=dict, description="Krippendorff's alpha by dimension, ordinal: 1 perfect, 0 chance"
    )
    correlation: Correlation = Correlation()
    drift: Change | None = Field(None, description="mean change on the canary set since it was first judged")
    drift_absolute: Share | None = None
    canary: int = Field(0, ge=0, description="segments of the canary set that the judge has judged again")
    canary_accuracy: Share | None = Field(
        None, description="share of the canary set's pairs that differ in milestones gained and are ordered rightly"
    )
    usage: Usage = Usage()


class PairFigures(Contract):
    """Clips compared directly, in both orders."""

    compared: int = Field(0, ge=0)
    consistent: Share | None = Field(None, description="share of verdicts that did not depend on the order")
    decisions: int = Field(0, ge=0, description="verdicts that preferred a clip; a pair has one in each order")
    bias: Change | None = Field(None, description="share of decisions for the clip shown first, minus one half")
    kappa_with_votes: Change | None = Field(
        None, description="agreement of consistent verdicts with the votes, over chance"
    )


class EpochJudging(Contract):
    """`judges.json` of one epoch, merged from the reports of all judge processes."""

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    rubric: str = Field(max_length=40)
    segments: dict[ScoreStatus, int]
    votes: int = Field(ge=0)
    agreement: Share | None = None
    correlation: Correlation = Correlation()
    judges: dict[JudgeName, JudgeFigures] = Field(default_factory=dict, max_length=16)
    pairs: PairFigures = PairFigures()
    usage: Usage = Usage()
    budget_exhausted: bool = Field(False, description="a call was not made because the budget was exhausted")
    created: AwareDatetime
