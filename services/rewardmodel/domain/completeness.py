"""Decides whether an epoch's scores are complete, or whether a quorum suffices at the deadline.

The exact list of `finished.json` decides; events are never counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shared.contracts.events import ScoreStatus
from shared.contracts.ids import SegmentId


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """Numbers of an epoch's listed segments by outcome; `missing` segments have no outcome yet."""

    judged: int
    abstained: int
    dead: int
    missing: int

    @property
    def listed(self) -> int:
        """Number of segments of the epoch."""
        return self.judged + self.abstained + self.dead + self.missing

    @property
    def complete(self) -> bool:
        """Whether every listed segment has an outcome."""
        return self.missing == 0

    def quorum(self, share: float) -> bool:
        """Whether at least `share` of the listed segments were judged; an epoch without segments has its quorum."""
        # Divide, do not multiply: 0.56 * 25 is slightly more than 14 in floating point.
        return not self.listed or self.judged / self.listed >= share

    def counts(self) -> dict[str, int]:
        """The counts by name, as the card shows them."""
        return {"judged": self.judged, "abstained": self.abstained, "dead": self.dead, "missing": self.missing}


def count_outcomes(listed: Iterable[SegmentId], found: Mapping[SegmentId, ScoreStatus]) -> OutcomeCounts:
    """Count the outcomes of the listed segments; ignore those of other segments."""
    statuses = [found.get(segment) for segment in listed]
    return OutcomeCounts(
        judged=statuses.count("judged"),
        abstained=statuses.count("abstained"),
        dead=statuses.count("dead"),
        missing=statuses.count(None),
    )
