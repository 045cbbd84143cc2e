"""Selects the segments to export. An export costs a replay and about a megabyte, so it is optional."""

from enum import StrEnum

from shared.contracts.segment import SegmentManifest


class ExportPolicy(StrEnum):
    """What the service exports automatically; `zelda export` exports any segment on demand."""

    ALL = "all"  # every recorded segment
    JUDGED = "judged"  # every segment with a score
    TOP = "top"  # a segment among the best k of its epoch at the time it is judged
    MILESTONES = "milestones"  # a segment in which a milestone was reached
    NONE = "none"

    @property
    def waits_for_scores(self) -> bool:
        """Whether the decision needs the judges' outcome, so that `scores.ready` triggers it."""
        return self in (ExportPolicy.JUDGED, ExportPolicy.TOP)


def reached_milestone(manifest: SegmentManifest) -> bool:
    """Whether the segment ends with more milestones than it began with."""
    return manifest.milestones_end > manifest.milestones_start


def in_top_k(value: float, others: list[float], k: int) -> bool:
    """Whether `value` is among the best `k` of its epoch so far; ties count as in."""
    return sum(other > value for other in others) < k
