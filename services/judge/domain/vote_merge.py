"""Votes into a score: the median per dimension, how far the votes agree, and when to ask for more.

Fewer than two valid votes, or not more than half of those asked for, give no number at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from services.judge.domain.replies import Vote
from shared.contracts.scores import MAX_VOTE, DimensionScore, JudgeResult


@dataclass(frozen=True, slots=True)
class VoteSchedule:
    """How many votes to ask for: the first rung always, the next ones only while the votes are split.

    Votes are split when fewer than `settled_share` of them lie within `tolerance` of their median, in some dimension.
    """

    sizes: tuple[int, ...] = (3, 7, 11)
    tolerance: int = 1
    settled_share: float = 0.75

    def votes_to_request(self, votes: Sequence[Vote], asked: int) -> int:
        """How many more votes to ask for now; 0 when the votes settle it or the ladder ends."""
        higher = [size for size in self.sizes if size > asked]
        if not higher:
            return 0
        if asked == 0:
            return higher[0]
        if not has_quorum(len(votes), asked):
            return 0  # replies that are no votes are a fault of the server; more of them would only cost
        return higher[0] - asked if self.split(votes) else 0

    def split(self, votes: Sequence[Vote]) -> bool:
        """Whether the votes are split in at least one dimension."""
        return any(self._split([vote.values[name] for vote in votes]) for name in votes[0].values)

    def _split(self, values: Sequence[int]) -> bool:
        middle = median(values)
        near = sum(abs(value - middle) <= self.tolerance for value in values)
        return near < self.settled_share * len(values)


def has_quorum(valid: int, asked: int) -> bool:
    """Whether so many valid votes of those asked for may speak: at least two (of one, that one), and more than half."""
    return valid >= min(2, max(1, asked)) and 2 * valid > asked


def merge(votes: Sequence[Vote]) -> dict[str, DimensionScore]:
    """The median of each dimension, mapped from 0-5 to [0, 1], with its votes and their spread."""
    return {name: _dimension([vote.values[name] for vote in votes]) for name in votes[0].values}


def _dimension(values: list[int]) -> DimensionScore:
    return DimensionScore(
        votes=values,
        value=median(values) / MAX_VOTE,
        unanimous=len(set(values)) == 1,
        spread=max(values) - min(values),
    )


def unanimous_share(results: Sequence[JudgeResult]) -> float | None:
    """Share of judged dimensions whose votes are unanimous; None when nothing was judged."""
    scores = [score for result in results for score in result.dimensions.values()]
    return sum(score.unanimous for score in scores) / len(scores) if scores else None
