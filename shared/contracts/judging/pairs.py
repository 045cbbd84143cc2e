"""Pairs of segments that a judge compared directly: which ones an epoch selected, and the answers about each pair."""

from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field

from shared.contracts.base import Contract
from shared.contracts.epoch import RewardModelRef, SegmentRef
from shared.contracts.events import Epoch
from shared.contracts.ids import Digest, JudgeName, RunId
from shared.contracts.scores import RubricVersion, Usage

MAX_PAIRS: Final = 10_000  # of one epoch

Probability = Annotated[float, Field(ge=0, le=1)]
Reason = Annotated[str, Field(max_length=500)]


class SelectedPair(Contract):
    """Two judged segments of an epoch; `first` has the smaller name."""

    first: SegmentRef
    second: SegmentRef
    disagreement: float | None = Field(
        None, ge=0, description="deviation of the members' probabilities that `first` is better; None: drawn at random"
    )


class PairSelection(Contract):
    """The pairs of an epoch that are compared. Created once, so that a repeated event compares the same pairs."""

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    rubric: RubricVersion
    model: RewardModelRef | None = Field(None, description="whose disagreement selected them; None: a random draw")
    pairs: list[SelectedPair] = Field(default_factory=list, max_length=MAX_PAIRS)
    note: str | None = Field(None, max_length=500, description="why there are no pairs, or why they are a random draw")
    created: AwareDatetime


class OrderAnswer(Contract):
    """The judge's answer to one order of the clips: probabilities that the one shown first is better, and so on.

    A judge that gives no probabilities has 1 at its answer.
    """

    prompt: Digest = Field(description="SHA-256 of the exact request body without its seed")
    first: Probability
    equal: Probability
    second: Probability
    reason: Reason = ""
    kept: bool = Field(False, description="whether prompt and raw reply were stored; retention removes them later")


class PairComparison(Contract):
    """The one outcome of a selected pair. `abstained` has reasons and no label.

    `forward` shows `pair.first` first, `backward` shows it second.
    """

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    rubric: RubricVersion
    pair: SelectedPair
    judge: JudgeName
    route: str = Field(max_length=200)
    model: str = Field(max_length=120)
    status: Literal["judged", "abstained"]
    forward: OrderAnswer | None = None
    backward: OrderAnswer | None = None
    label: Probability | None = Field(
        None, description="probability that `pair.first` is better: mean of both orders, 0.5 if they disagree"
    )
    reasons: list[Reason] = Field(default_factory=list, max_length=4, description="why the judge abstained")
    usage: Usage = Usage()
    created: AwareDatetime
