"""Counts of the judges' scores in one epoch. An abstained segment adds no value to a mean."""

from dataclasses import dataclass, field

from shared.contracts.scores import JudgeResult, SegmentScores


@dataclass(slots=True)
class RunningMean:
    """The mean of the values added so far."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float | None) -> None:
        """Add one value; None is ignored."""
        if value is not None:
            self.total += value
            self.count += 1

    @property
    def value(self) -> float | None:
        """The mean, or None without values."""
        return self.total / self.count if self.count else None


@dataclass(slots=True)
class ScoreCounter:
    """The outcomes of one epoch's segments so far. A segment that is added again counts once."""

    outcomes: dict[str, str] = field(default_factory=dict)
    votes: int = 0
    agreement: RunningMean = field(default_factory=RunningMean)
    score: RunningMean = field(default_factory=RunningMean)
    prompt_tokens: int = 0
    output_tokens: int = 0
    money: float = 0.0

    def add(self, scores: SegmentScores) -> None:
        """Count one segment's scores."""
        if scores.segment in self.outcomes:
            return
        self.outcomes[scores.segment] = scores.status
        self.agreement.add(scores.agreement)
        self.score.add(scores.weighted)
        for judge in scores.judges:
            self.votes += vote_count(judge)
            self.prompt_tokens += judge.usage.prompt_tokens
            self.output_tokens += judge.usage.output_tokens
            self.money += judge.usage.money

    def count(self, status: str) -> int:
        """Number of segments with this status: judged, abstained or dead."""
        return sum(outcome == status for outcome in self.outcomes.values())


def vote_count(judge: JudgeResult) -> int:
    """Samples of one judge for one segment: each sample votes on every dimension of the judge."""
    return max((len(dimension.votes) for dimension in judge.dimensions.values()), default=0)
