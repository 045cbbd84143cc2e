"""What the judges said about a segment, as one number with its uncertainty.

A score object that is not `judged` gives no rating: missing is missing, never a middle value.
"""

from dataclasses import dataclass
from typing import Final

from shared.contracts.ids import Digest, EpisodeId, SegmentId
from shared.contracts.scores import MAX_VOTE, SegmentScores

SMALLEST_VOTE_SPREAD: Final = 0.5  # of one vote step: three equal votes still say no more than the nearest anchor


@dataclass(frozen=True, slots=True)
class Rating:
    """One judged segment. `value` is in [0, 1]; `deviation` is the standard error that the votes leave on it."""

    epoch: int
    episode: EpisodeId
    segment: SegmentId
    segment_key: str
    segment_digest: Digest
    score_digest: str
    value: float
    standard_error: float
    agreement: float


def rating(scores: SegmentScores, digest: str) -> Rating | None:
    """The rating in a score object with SHA-256 `digest`, or None if nothing was judged."""
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
        standard_error=_deviation(scores),
        agreement=scores.agreement if scores.agreement is not None else 0.0,
    )


def _deviation(scores: SegmentScores) -> float:
    """Standard error of the weighted mean: independent errors of the dimensions, each by its own votes."""
    terms: dict[str, list[float]] = {}
    for result in scores.judges:
        for name, dimension in result.dimensions.items():
            terms.setdefault(name, []).append(_squared_error(dimension.votes))
    weights = {name: scores.weights.get(name, 0.0) for name in terms}
    total = sum(weights.values())
    if total <= 0:
        return 0.0
    # A dimension that several judges rated counts by their mean, whose squared error is the sum over n squared.
    return float(sum((weights[n] / total) ** 2 * sum(terms[n]) / len(terms[n]) ** 2 for n in terms) ** 0.5)


def _squared_error(votes: list[int]) -> float:
    mean = sum(votes) / len(votes)
    spread = sum((vote - mean) ** 2 for vote in votes) / len(votes)
    return max(spread, SMALLEST_VOTE_SPREAD**2) / len(votes) / MAX_VOTE**2
