"""Selects the judged play that the policy imitates: the segments with the best scores of the latest epochs. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from services.coordinator.domain.run_view import EpochView
from shared.contracts.epoch import ImitatedSegment, Imitation
from shared.contracts.ids import SegmentId
from shared.contracts.learning.restarts import ImitationConfig
from shared.contracts.scores import SegmentScores


def compared_epochs(config: ImitationConfig, epochs: Sequence[EpochView]) -> list[EpochView]:
    """The finished epochs whose segments are compared for the epoch after `epochs`; none if none is imitated."""
    if not config.of_judged:
        return []
    return [epoch for epoch in epochs[-config.epochs_back :] if epoch.finished is not None]


def select_imitation(
    config: ImitationConfig, epochs: Iterable[EpochView], scores: Mapping[SegmentId, SegmentScores]
) -> Imitation | None:
    """The best judged segments that these epochs list. None if none of them beats the mean score.

    Of equal scores, the segment whose name comes first wins. A score of other bytes than the listed ones is ignored.
    """
    listed = [ref for epoch in epochs if epoch.finished is not None for ref in epoch.finished.document.segments]
    judged = [
        ImitatedSegment(segment=ref.segment, key=ref.key, digest=ref.digest, score=score.weighted)
        for ref in listed
        if (score := scores.get(ref.segment)) is not None
        and score.weighted is not None
        and score.segment_digest == ref.digest
    ]
    if not judged:
        return None
    baseline = fmean(one.score for one in judged)
    best = sorted(judged, key=lambda one: (-one.score, one.segment))[: config.top_k]
    return Imitation(baseline=baseline, segments=best) if best[0].score > baseline else None
