"""Reduces the judges' scores of a segment to one number with its uncertainty.

A score object that is not `judged` has no rating: missing data stay missing and never become a middle value.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shared.contracts.ids import Digest, EpisodeId, SegmentId
from shared.contracts.scores import MAX_VOTE, DimensionScore, SegmentScores, counted_results

MIN_VOTE_DEVIATION: Final = 0.5  # in vote steps: even equal votes only name the nearest anchor


@dataclass(frozen=True, slots=True)
class Rating:
    """One judged segment. `value` is in [0, 1]; `standard_error` is its uncertainty from the votes."""

    epoch: int
    episode: EpisodeId
    segment: SegmentId
    segment_key: str
    segment_digest: Digest
    score_digest: str
    value: float
    standard_error: float
    agreement: float


def rating_of(scores: SegmentScores, digest: str) -> Rating | None:
    """The rating in a score object with SHA-256 `digest`, or None if the segment was not judged."""
    if scores.status != "judged" or scores.weighted is None:
        return None
    return Rating(
        epoch=scores.epoch,
        episode=scores.episode,
        segment=scores.segment,
        segment_key=scores.segment_key,
        segment_digest=scores.segment_digest,
        score_digest=digest,
        value=scores.weighted,
        standard_error=_standard_error(scores),
        agreement=scores.agreement if scores.agreement is not None else 0.0,
    )


def data_digest(ratings: Sequence[Rating]) -> Digest:
    """SHA-256 over the sorted digests of the score objects: identifies the votes behind a model."""
    return Digest(hashlib.sha256("".join(sorted(rating.score_digest for rating in ratings)).encode()).hexdigest())


def _standard_error(scores: SegmentScores) -> float:
    """Standard error of the weighted mean; the errors of the dimensions are independent."""
    terms: dict[str, list[float]] = {}
    for result in counted_results(scores):
        for name, dimension in result.dimensions.items():
            terms.setdefault(name, []).append(_squared_error(dimension))
    weights = {name: scores.weights.get(name, 0.0) for name in terms}
    total = sum(weights.values())
    if total <= 0:
        return 0.0
    # n judges of one dimension count by their mean: its squared error is the sum of theirs over n squared.
    return float(sum((weights[n] / total) ** 2 * sum(terms[n]) / len(terms[n]) ** 2 for n in terms) ** 0.5)


def _squared_error(dimension: DimensionScore) -> float:
    if dimension.deviation is not None:  # the whole distribution is known: more votes of it would add nothing
        return max(dimension.deviation, MIN_VOTE_DEVIATION) ** 2 / MAX_VOTE**2
    votes = dimension.votes
    mean = sum(votes) / len(votes)
    # The variance of the judge's votes, estimated from these few: hence n - 1.
    variance = sum((vote - mean) ** 2 for vote in votes) / max(1, len(votes) - 1)
    return max(variance, MIN_VOTE_DEVIATION**2) / len(votes) / MAX_VOTE**2
