"""Merges votes into a score: the median per dimension, the agreement of the votes, and when to request more.

Fewer than two valid votes, or no majority of the requested ones, give no score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from services.judge.domain.replies import Vote
from shared.contracts.scores import MAX_VOTE, DimensionScore, JudgeResult


@dataclass(frozen=True, slots=True)
class VoteSchedule:
    """How many votes to request in total: `sizes[0]` always, each next size only while the votes are split.

    Votes are split when, in some dimension, fewer than `settled_share` of them lie within `tolerance` of the median.
    """

    sizes: tuple[int, ...] = (3, 7, 11)
    tolerance: int = 1
    settled_share: float = 0.75

    def votes_to_request(self, votes: Sequence[Vote], requested: int) -> int:
        """Return how many more votes to request; 0 if the votes agree or the schedule ends."""
        higher = [size for size in self.sizes if size > requested]
        if not higher:
            return 0
        if requested < self.sizes[0]:
            return self.sizes[0] - requested  # the first votes are always completed
        if not has_quorum(len(votes), requested):
            return 0  # invalid replies are the server's fault: more of them would only cost
        return higher[0] - requested if self.split(votes) else 0

    def split(self, votes: Sequence[Vote]) -> bool:
        """Return whether the votes are split in at least one dimension."""
        return any(self._split([vote.values[name] for vote in votes]) for name in votes[0].values)

    def _split(self, values: Sequence[int]) -> bool:
        middle = median(values)
        near = sum(abs(value - middle) <= self.tolerance for value in values)
        return near < self.settled_share * len(values)


def has_quorum(valid: int, requested: int) -> bool:
    """Return whether the valid votes suffice: at least two (of one, that one), and more than half of the requested."""
    return valid >= min(2, max(1, requested)) and 2 * valid > requested


def merge(votes: Sequence[Vote]) -> dict[str, DimensionScore]:
    """Return the median of each dimension, mapped from 0-5 to [0, 1], with its votes and their spread."""
    return {name: _dimension([vote.values[name] for vote in votes]) for name in votes[0].values}


def _dimension(values: list[int]) -> DimensionScore:
    return DimensionScore(
        votes=values,
        value=median(values) / MAX_VOTE,
        unanimous=len(set(values)) == 1,
        spread=max(values) - min(values),
    )


def unanimous_share(results: Sequence[JudgeResult]) -> float | None:
    """Return the share of judged dimensions with unanimous votes; None if all judges abstained."""
    scores = [score for result in results for score in result.dimensions.values()]
    return sum(score.unanimous for score in scores) / len(scores) if scores else None
