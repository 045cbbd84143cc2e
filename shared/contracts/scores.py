"""The scores of one segment: every vote with its judge, and the merged value per dimension."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from shared.contracts.base import Contract
from shared.contracts.events import Epoch, ScoreStatus
from shared.contracts.ids import Digest, EpisodeId, JudgeName, RunId, SegmentId

DimensionName = Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,29}$")]
DIMENSIONS: tuple[str, ...] = ("progress", "dialog", "puzzle", "novelty", "efficiency")
MAX_VOTE = 5


class DimensionScore(Contract):
    """Votes of one judge on one rubric dimension, on the anchored scale 0-5, and their median mapped to [0, 1].

    A vote that was read from probabilities is the most probable one, and the value is the expected vote.
    """

    votes: list[Annotated[int, Field(ge=0, le=MAX_VOTE)]] = Field(min_length=1, max_length=11)
    value: float = Field(ge=0, le=1)
    unanimous: bool
    spread: int = Field(ge=0, le=MAX_VOTE, description="largest minus smallest vote")
    deviation: float | None = Field(
        None, ge=0, description="standard deviation of the vote in votes, if it was read from probabilities"
    )


class Usage(Contract):
    """The cost of one judge's requests for one segment."""

    calls: int = Field(0, ge=0)
    prompt_tokens: int = Field(0, ge=0)
    cached_tokens: int = Field(0, ge=0)
    output_tokens: int = Field(0, ge=0)
    seconds: float = Field(0, ge=0)
    money: float = Field(0, ge=0, description="estimate in the currency of the configured prices")


class JudgeResult(Contract):
    """One judge's result for one segment. `abstained` has reasons and no number."""

    judge: JudgeName
    route: str = Field(max_length=200)
    model: str = Field(max_length=120)
    prompt: Digest = Field(description="SHA-256 of the exact request body without its seed")
    status: Literal["judged", "abstained"]
    dimensions: dict[DimensionName, DimensionScore] = Field(default_factory=dict)
    reasons: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=22)
    usage: Usage = Usage()


class SegmentScores(Contract):
    """Commit object of `scores.ready`: the one outcome of a segment under one rubric version."""

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    episode: EpisodeId
    segment: SegmentId
    segment_key: str = Field(max_length=512)
    segment_digest: Digest
    rubric: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    status: ScoreStatus
    judges: list[JudgeResult] = Field(default_factory=list, max_length=8)
    phase: str | None = Field(None, max_length=40, description="phase of the game whose weights were used")
    weights: dict[DimensionName, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    weighted: float | None = Field(
        None, ge=0, le=1, description="weighted mean over judged dimensions; None unless judged"
    )
    agreement: float | None = Field(None, ge=0, le=1, description="share of judged dimensions with unanimous votes")
    error: str | None = Field(None, max_length=500, description="why the segment is dead")
    created: AwareDatetime


def values_of(results: Iterable[JudgeResult]) -> dict[DimensionName, float]:
    """Value per dimension over all judges. A dimension with several judges counts by its mean."""
    found: dict[DimensionName, list[float]] = {}
    for result in results:
        for name, score in result.dimensions.items():
            found.setdefault(name, []).append(score.value)
    return {name: sum(values) / len(values) for name, values in found.items()}
