"""Which segments are exported: exporting costs a replay and about a megabyte, so it is a choice."""

from enum import StrEnum

from shared.contracts.segment import SegmentManifest


class ExportPolicy(StrEnum):
    """What the service exports by itself; `zelda export` exports anything on request."""

    ALL = "all"  # every recorded segment
    JUDGED = "judged"  # every segment with a score
    TOP = "top"  # a segment that is among the best k of its epoch when it is judged
    MILESTONES = "milestones"  # a segment in which a milestone was reached
    NONE = "none"

    @property
    def waits_for_scores(self) -> bool:
        """Whether the decision needs the judges' outcome, and so follows `scores.ready`."""
        return self in (ExportPolicy.JUDGED, ExportPolicy.TOP)


def reached_milestone(manifest: SegmentManifest) -> bool:
    """Whether the segment ends with more milestones than it began with."""
    return manifest.milestones_end > manifest.milestones_start


def among_best(value: float, others: list[float], k: int) -> bool:
    """Whether `value` is among the k best of its epoch so far; ties count as among them."""
    return sum(other > value for other in others) < k
