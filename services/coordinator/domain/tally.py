"""Counts of what the judges said in one epoch. Missing stays missing: an abstained segment adds no number."""

from dataclasses import dataclass, field

from shared.contracts.scores import JudgeResult, SegmentScores


@dataclass(slots=True)
class Mean:
    """A running mean of values that exist."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float | None) -> None:
        """Take one more value into account; None is no value."""
        if value is not None:
            self.total += value
            self.count += 1

    @property
    def value(self) -> float | None:
        """The mean, or None without any value."""
        return self.total / self.count if self.count else None


@dataclass(slots=True)
class Tally:
    """Outcomes of one epoch's segments so far. Each segment counts once, however often it is added."""

    outcomes: dict[str, str] = field(default_factory=dict)
    votes: int = 0
    agreement: Mean = field(default_factory=Mean)
    score: Mean = field(default_factory=Mean)
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
            self.votes += votes(judge)
            self.prompt_tokens += judge.usage.prompt_tokens
            self.output_tokens += judge.usage.output_tokens
            self.money += judge.usage.money

    def count(self, status: str) -> int:
        """How many segments ended in `status`: judged, abstained or dead."""
        return sum(outcome == status for outcome in self.outcomes.values())


def votes(judge: JudgeResult) -> int:
    """Samples of one judge on one segment: each sample votes on every dimension of that judge."""
    return max((len(dimension.votes) for dimension in judge.dimensions.values()), default=0)
