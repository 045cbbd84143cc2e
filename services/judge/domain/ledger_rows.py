"""What one judge process notes about the segments of an epoch: the raw material of the epoch's report.

Milestones appear here, after the votes are in, to measure the judges; they never reach a prompt.
"""

from collections.abc import Sequence

from pydantic import Field

from shared.contracts.base import Contract
from shared.contracts.events import ScoreStatus
from shared.contracts.ids import EpisodeId, JudgeName, SegmentId
from shared.contracts.scores import JudgeResult, SegmentScores, Usage
from shared.contracts.segment import SegmentManifest


class JudgeRow(Contract):
    """One judge on one segment: its votes by dimension, and in how many of these all votes are the same."""

    judge: JudgeName
    value: float | None = None
    votes: dict[str, list[int]] = Field(default_factory=dict)
    unanimous: int = 0


class SegmentRow(Contract):
    """One segment: what it truly gained, and what the judges said."""

    segment: SegmentId
    episode: EpisodeId
    index: int
    gained: int
    status: ScoreStatus
    weighted: float | None = None
    judges: list[JudgeRow] = Field(default_factory=list)


class PairRow(Contract):
    """Two clips compared in both orders. Verdicts are as given: `A` is the clip shown first."""

    forward: str
    backward: str
    gap: float = Field(description="weighted score of the first clip minus that of the second")


class CanaryRow(Contract):
    """A canary segment judged again: change of one judge's value since the first time."""

    judge: JudgeName
    change: float


class LedgerPart(Contract):
    """Notes of one process about one epoch."""

    replica: str
    rows: list[SegmentRow] = Field(default_factory=list)
    pairs: list[PairRow] = Field(default_factory=list)
    canary: list[CanaryRow] = Field(default_factory=list)
    usage: dict[str, Usage] = Field(default_factory=dict)
    exhausted: bool = Field(False, description="a call was not made because the budget was used up")


def segment_row(scores: SegmentScores, manifest: SegmentManifest) -> SegmentRow:
    """The row of a judged segment."""
    return SegmentRow(
        segment=scores.segment,
        episode=scores.episode,
        index=manifest.index,
        gained=max(0, manifest.milestones_end - manifest.milestones_start),
        status=scores.status,
        weighted=scores.weighted,
        judges=[_judge_row(result) for result in scores.judges],
    )


def _judge_row(result: JudgeResult) -> JudgeRow:
    return JudgeRow(
        judge=result.judge,
        value=mean_value(result),
        votes={name: score.votes for name, score in result.dimensions.items()},
        unanimous=sum(score.unanimous for score in result.dimensions.values()),
    )


def mean_value(result: JudgeResult) -> float | None:
    """One number for a judge on a segment: the mean over its dimensions; None when it abstained."""
    values: Sequence[float] = [score.value for score in result.dimensions.values()]
    return sum(values) / len(values) if values else None
