"""Where episodes begin: at the true start, or at the state of a milestone that was reached before.

Half of the episodes at least begin at the true start, because an archive of later states changes what the policy is
trained on (and nobody will be placed there in the end). Evaluation never uses this.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

TRUE_START = 0
MOST_RESTARTS = 0.5  # more, and the policy forgets the way to where the restarts begin


@dataclass(frozen=True, slots=True)
class Shares:
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


@dataclass
class Curriculum:
    """Chooses starts and remembers how often each was used and how far the episodes from it came."""

    shares: Shares = field(default_factory=Shares)
    started: dict[int, int] = field(default_factory=dict)
    advanced: dict[int, int] = field(default_factory=dict)

    def choose(self, draw: float, available: Sequence[int]) -> int:
        """The milestone to begin after (0: true start) for a `draw` in [0, 1). Only states in `available` exist."""
        edge = 0.0
        for milestone, share in enumerate(self.shares.milestones, start=1):
            if milestone in available:
                edge += share
                if draw < edge:
                    return milestone
        return TRUE_START

    def note(self, start: int, gained: int) -> None:
        """An episode that began at `start` ended with `gained` more milestones."""
        self.started[start] = self.started.get(start, 0) + 1
        self.advanced[start] = self.advanced.get(start, 0) + (gained > 0)

    def state(self) -> dict[str, dict[str, int]]:
        """Plain numbers for a checkpoint."""
        return {
            "started": {str(start): count for start, count in self.started.items()},
            "advanced": {str(start): count for start, count in self.advanced.items()},
        }

    def restore(self, state: dict[str, dict[str, int]]) -> None:
        """Take over what `state` returned."""
        self.started = {int(start): count for start, count in state["started"].items()}
        self.advanced = {int(start): count for start, count in state["advanced"].items()}
