"""What the driver tells every vector environment at the start of an epoch, and what it gets back at its end.

Plain picklable data: it travels to Ray actors. `RLlibVectorEnv` implements `EpochVectorEnv` for games.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from services.trainer.domain.episodes import EpisodeName
from services.trainer.domain.epoch_metrics import EpisodeSummary
from shared.contracts.epoch import SegmentRef

GENERATION = 1_000_000
"""Episode numbers of one life of an environment. A rebuilt environment starts at the next multiple, so that it can
never give an episode a name that was used before. An environment that played more episodes than this in one epoch would
run into the numbers of its next life, and segments under a name in use are taken for stored ones."""
GENERATIONS_PER_RUNNER = 100
"""Lives of environments within one life of a runner; a recreated runner starts at the next multiple."""


@dataclass(frozen=True)
class EpochPlan:
    """One epoch as the environments need it."""

    epoch: int
    reward_model: bytes | None = None
    """Weights file, already checked against its digest."""
    reward_model_digest: str | None = None
    checkpoint: str | None = None
    """Digest of the checkpoint that the epoch began with; goes into every segment's manifest."""
    first_episodes: dict[str, int] = field(default_factory=dict)
    """By `{runner}/{env}`: number of the next episode, when an epoch is resumed."""
    generation: int = 0
    steps: int = 0
    """Steps of the epoch that are done: what is left of the budget is spread over the rest."""
    recorded: int = 0
    """Segments this epoch already has in the store: they count against the budget."""

    def counting(self, episodes: Iterable[str]) -> "EpochPlan":
        """This plan, of an epoch that has a segment of each of these episodes in the store.

        What a dead driver recorded of an epoch that now begins again does not count: the play is the same, it gives the
        same segments under the same names, and the sampler chooses as it did, unless another budget makes it choose
        others. What follows a checkpoint in mid-epoch is other play, because the games are not in it: all count.
        """
        names = [EpisodeName.read(episode) for episode in episodes]
        again = 0 if self.steps else sum(map(self._plays_again, names))
        return replace(self, recorded=len(names) - again)

    def _plays_again(self, name: EpisodeName) -> bool:
        first = self.first_episode(name.place)
        return name.number >= first and name.number // GENERATION == first // GENERATION

    def first_episode(self, place: str) -> int:
        """Number of the first episode at `{runner}/{env}`."""
        return self.first_episodes.get(place, self._free_generation * GENERATION)

    def next_life(self, lives: int) -> "EpochPlan":
        """The plan for environments rebuilt the `lives`th time: their numbers lie above all that this plan gives."""
        return replace(self, generation=self._free_generation + lives, first_episodes={})

    @property
    def _free_generation(self) -> int:
        """The lowest generation above the numbers of a resumed epoch."""
        used = max(self.first_episodes.values(), default=-1)
        return max(self.generation, 1 + used // GENERATION)


@dataclass(frozen=True)
class RolloutResult:
    """What one vector environment brought in since the last collect."""

    runner: int
    summaries: list[EpisodeSummary] = field(default_factory=list)
    segments: list[SegmentRef] = field(default_factory=list)
    dropped: int = 0
    next_episodes: dict[str, int] = field(default_factory=dict)


class EpochVectorEnv(Protocol):
    """The part of a vector environment that the driver talks to, beside Gymnasium's own."""

    runner: int
    """Index of the env runner; part of every episode's name, set before the first reset."""

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Take over the plan. The next call is `reset`: no episode crosses the border of an epoch."""
        ...

    def collect(self, *, final: bool) -> RolloutResult:
        """Hand over what is new; with `final`, first end open episodes and wait until all segments are stored."""
        ...


def next_episodes(results: Sequence[RolloutResult]) -> dict[str, int]:
    """The merged episode counters of all runners."""
    return {place: number for result in results for place, number in result.next_episodes.items()}
