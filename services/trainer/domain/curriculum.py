"""The curriculum: which episodes begin at the true start, and which at the state of a milestone.

At least half of the episodes begin at the true start, because later starts change the distribution of states that the
policy trains on. Evaluation always begins at the true start.
"""

from collections.abc import Sequence
from dataclasses import dataclass

TRUE_START = 0
MAX_SHARE = 0.5  # with more, the policy forgets the way to the later starts
SLOTS = 100  # the environment draws uniformly from a list of this length; a share becomes a number of entries


@dataclass(frozen=True, slots=True)
class CurriculumShares:
    """Share of episodes by start state. Index 0 is the first milestone; the true start has the rest."""

    milestones: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if any(share < 0 for share in self.milestones):
            raise ValueError(f"curriculum shares {self.milestones}: none may be negative")
        if sum(self.milestones) > MAX_SHARE + 1e-9:
            raise ValueError(
                f"curriculum shares {self.milestones} sum to {sum(self.milestones):g}: at most {MAX_SHARE} of "
                "the episodes may begin after a milestone"
            )


def mixture(shares: CurriculumShares, available: Sequence[int]) -> list[int]:
    """A hundred starts in the proportion of `shares`: milestones in `available` (from 1) and the true start."""
    slots: list[int] = []
    for milestone, share in enumerate(shares.milestones, start=1):
        if milestone in available:
            slots += [milestone] * round(share * SLOTS)
    return slots + [TRUE_START] * (SLOTS - len(slots))
