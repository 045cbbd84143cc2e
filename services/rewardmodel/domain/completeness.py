"""When an epoch's scores are in: every listed segment has an outcome, or the deadline passed and a quorum decides.

Decided against the exact list of finished.json, never by counting events.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shared.contracts.events import ScoreStatus
from shared.contracts.ids import SegmentId


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """How many of an epoch's listed segments were judged, abstained from, dead, or have no outcome yet."""

    judged: int
    abstained: int
    dead: int
    missing: int

    @property
    def listed(self) -> int:
        """Segments of the epoch."""
        return self.judged + self.abstained + self.dead + self.missing

    @property
    def complete(self) -> bool:
        """Whether every listed segment has an outcome."""
        return self.missing == 0

    def quorum(self, share: float) -> bool:
        """Whether at least `share` of the listed segments were judged; an epoch without segments has its quorum."""
        # Not by a product: 0.56 of 25 would be a hair above 14.
        return not self.listed or self.judged / self.listed >= share

    def counts(self) -> dict[str, int]:
        """As the card shows them."""
        return {"judged": self.judged, "abstained": self.abstained, "dead": self.dead, "missing": self.missing}


def count_outcomes(listed: Iterable[SegmentId], found: Mapping[SegmentId, ScoreStatus]) -> OutcomeCounts:
    """Count the outcomes of the listed segments; scores of others are ignored."""
    statuses = [found.get(segment) for segment in listed]
    return OutcomeCounts(
        statuses.count("judged"), statuses.count("abstained"), statuses.count("dead"), statuses.count(None)
    )
