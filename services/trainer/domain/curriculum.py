"""Where episodes begin: at the true start, or at the state of a milestone that was reached before.

Half of the episodes at least begin at the true start, because an archive of later states changes what the policy is
trained on (and nobody will be placed there in the end). Evaluation never uses this.
"""

from collections.abc import Sequence
from dataclasses import dataclass

TRUE_START = 0
MOST_RESTARTS = 0.5  # more, and the policy forgets the way to where the restarts begin
SLOTS = 100  # the environment draws evenly from a list; a share becomes this many entries of a hundred


@dataclass(frozen=True, slots=True)
class CurriculumShares:
    """Share of episodes by start: the true start has what the milestones leave. Index 0 is the first milestone."""

    milestones: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if any(share < 0 for share in self.milestones):
            raise ValueError(f"curriculum shares {self.milestones}: none may be negative")
        if sum(self.milestones) > MOST_RESTARTS + 1e-9:
            raise ValueError(
                f"curriculum shares {self.milestones} add up to {sum(self.milestones):g}: at most {MOST_RESTARTS} of "
                "the episodes may begin after a milestone"
            )


def mixture(shares: CurriculumShares, available: Sequence[int]) -> list[int]:
    """A hundred starts in the wanted proportion: milestones from `available` (1 is the first), and the true start."""
    slots: list[int] = []
    for milestone, share in enumerate(shares.milestones, start=1):
        if milestone in available:
            slots += [milestone] * round(share * SLOTS)
    return slots + [TRUE_START] * (SLOTS - len(slots))
