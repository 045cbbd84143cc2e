"""The rows that one judge process records about an epoch: the input of the epoch's report.

Rows hold milestones, which measure the judges after the vote; milestones never reach a prompt.
"""

from collections.abc import Sequence

from pydantic import Field

from shared.contracts.base import Contract
from shared.contracts.events import ScoreStatus
from shared.contracts.ids import EpisodeId, JudgeName, SegmentId
from shared.contracts.scores import JudgeResult, SegmentScores, Usage
from shared.contracts.segment import SegmentManifest


class JudgeRow(Contract):
    """One judge on one segment: votes by dimension, and the number of unanimous dimensions."""

    judge: JudgeName
    value: float | None = None
    votes: dict[str, list[int]] = Field(default_factory=dict)
    unanimous: int = 0


class SegmentRow(Contract):
    """One segment: milestones gained, and the judges' votes."""

    segment: SegmentId
    episode: EpisodeId
    index: int
    gained: int
    status: ScoreStatus
    weighted: float | None = None
    judges: list[JudgeRow] = Field(default_factory=list)


class PairRow(Contract):
    """Two clips compared in both orders. `forward` and `backward` are as answered: `A` is the clip shown first."""

    forward: str
    backward: str
    gap: float = Field(description="weighted score of the first clip minus that of the second")


class CanaryRow(Contract):
    """A canary segment judged again: one judge's value now, and its change since epoch 0.

    `gained` counts the milestones of the segment: the truth that measures the judge after the vote.
    """

    judge: JudgeName
    change: float
    value: float | None = None
    gained: int | None = None


class LedgerPart(Contract):
    """The part of one process in the ledger of one epoch."""

    replica: str
    rows: list[SegmentRow] = Field(default_factory=list)
    pairs: list[PairRow] = Field(default_factory=list)
    canary: list[CanaryRow] = Field(default_factory=list)
    usage: dict[str, Usage] = Field(default_factory=dict)
    exhausted: bool = Field(False, description="the budget refused a call")


def segment_row(scores: SegmentScores, manifest: SegmentManifest) -> SegmentRow:
    """Return the row of a scored segment."""
    return SegmentRow(
        segment=scores.segment,
        episode=scores.episode,
        index=manifest.index,
        gained=milestones_gained(manifest),
        status=scores.status,
        weighted=scores.weighted,
        judges=[_judge_row(result) for result in scores.judges],
    )


def milestones_gained(manifest: SegmentManifest) -> int:
    """How many milestones the segment reached."""
    return max(0, manifest.milestones_end - manifest.milestones_start)


def _judge_row(result: JudgeResult) -> JudgeRow:
    return JudgeRow(
        judge=result.judge,
        value=mean_value(result),
        votes={name: score.votes for name, score in result.dimensions.items()},
        unanimous=sum(score.unanimous for score in result.dimensions.values()),
    )


def mean_value(result: JudgeResult) -> float | None:
    """Return the mean of a judge's dimensions; None if it abstained."""
    values: Sequence[float] = [score.value for score in result.dimensions.values()]
    return sum(values) / len(values) if values else None
