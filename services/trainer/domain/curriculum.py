"""The curriculum: which episodes begin at the true start, and which at the state of a milestone.

At least half of the episodes begin at the true start, because later starts change the distribution of states that the
policy trains on. Evaluation always begins at the true start.
"""

import math
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
        if any(share and not slots for share, slots in zip(self.milestones, slots_of(self.milestones), strict=True)):
            raise ValueError(
                f"curriculum shares {self.milestones}: one is so small that no episode would begin there: "
                f"raise it to {1 / SLOTS}, or set it to 0"
            )

    @property
    def last(self) -> int:
        """The last milestone with a share, counted from 1; 0 without one."""
        return max((number for number, share in enumerate(self.milestones, start=1) if share), default=0)


def slots_of(shares: Sequence[float]) -> list[int]:
    """The number of entries of each share, by largest remainders; of equal remainders the first share's counts more.

    If each share were rounded on its own, twenty shares of 0.015 would become 40 entries instead of 30.
    """
    exact = [round(share * SLOTS, 6) for share in shares]  # 0.29 * 100 is less than 29
    slots = [math.floor(entries) for entries in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: slots[index] - exact[index])
    for index in by_remainder[: round(sum(exact)) - sum(slots)]:
        slots[index] += 1
    return slots


def mixture(shares: CurriculumShares) -> list[int]:
    """A hundred starts in the proportion of `shares`: milestones, counted from 1, and the true start."""
    slots: list[int] = []
    for milestone, count in enumerate(slots_of(shares.milestones), start=1):
        slots += [milestone] * count
    return slots + [TRUE_START] * (SLOTS - len(slots))
