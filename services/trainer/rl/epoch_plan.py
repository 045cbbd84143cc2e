"""What the driver sends to every vector environment at the start of an epoch, and what it collects from it.

Plain picklable data: it travels to Ray actors. `RLlibVectorEnv` implements `EpochVectorEnv` for games.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from services.trainer.domain.episodes import EpisodeName
from services.trainer.domain.epoch_metrics import EpisodeSummary
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.restarts.collector import CollectedState
from services.trainer.restarts.plan import RestartPlan
from services.trainer.state_archive.cell import ArchiveCell
from shared.contracts.epoch import SegmentRef
from shared.game.emulator.start import StartState

GENERATION = 1_000_000
"""Episode numbers of one generation of an environment. A rebuilt environment starts at the next multiple, so that no
episode name is used twice. An environment that played more episodes than this in one epoch would reuse names, and
segments under a used name count as stored."""
GENERATIONS_PER_RUNNER = 100
"""Generations of environments within one life of a runner; a recreated runner starts at the next multiple."""


@dataclass(frozen=True)
class EpochPlan:
    """One epoch as the environments need it."""

    epoch: int
    reward_model: bytes | None = None
    """Weights file, already checked against its digest."""
    reward_model_digest: str | None = None
    checkpoint: str | None = None
    """Digest of the checkpoint that the epoch began with, for every segment's manifest."""
    first_episodes: dict[str, int] = field(default_factory=dict)
    """By `{runner}/{env}`: number of the next episode, when an epoch is resumed."""
    generation: int = 0
    steps: int = 0
    """Finished steps of the epoch: the rest of the recording budget is spread over the remaining steps."""
    recorded: int = 0
    """Segments of the epoch that are in the store: they count against the budget."""
    restarts: RestartPlan | None = None
    """Where episodes begin beside the true start, and which archive cells are known; None: no restarts."""
    starts: tuple[StartState | None, ...] = ()
    """Saved states where episodes begin, drawn uniformly; None is the true start. Empty: always the true start."""

    def counting(self, episodes: Iterable[str]) -> "EpochPlan":
        """This plan, with `recorded` set from the episodes of the segments in the store, one per segment.

        Segments that a dead driver recorded of an epoch that restarts do not count: the play repeats, so the sampler
        chooses the same segments under the same names. After a checkpoint in mid-epoch the play differs, because the
        games are not in the checkpoint: then all segments count.
        """
        names = [EpisodeName.parse(episode) for episode in episodes]
        again = 0 if self.steps else sum(map(self._plays_again, names))
        return replace(self, recorded=len(names) - again)

    def _plays_again(self, name: EpisodeName) -> bool:
        first = self.first_episode(name.place)
        return name.number >= first and name.number // GENERATION == first // GENERATION

    def first_episode(self, place: str) -> int:
        """Number of the first episode at `{runner}/{env}`."""
        return self.first_episodes.get(place, self._free_generation * GENERATION)

    def after_restart(self, restarts: int) -> "EpochPlan":
        """The plan for environments rebuilt the `restarts`th time. Their episode numbers exceed all of this plan's."""
        return replace(self, generation=self._free_generation + restarts, first_episodes={})

    @property
    def _free_generation(self) -> int:
        """The lowest generation above the numbers of a resumed epoch."""
        used = max(self.first_episodes.values(), default=-1)
        return max(self.generation, 1 + used // GENERATION)


@dataclass(frozen=True)
class RolloutResult:
    """What one vector environment produced since the last `collect`."""

    runner: int
    summaries: list[EpisodeSummary] = field(default_factory=list)
    segments: list[SegmentRef] = field(default_factory=list)
    dropped: int = 0
    next_episodes: dict[str, int] = field(default_factory=dict)
    states: list[CollectedState] = field(default_factory=list)
    """First or better paths into archive cells, in the order of finding."""
    visits: Mapping[ArchiveCell, int] = field(default_factory=dict)
    """Episodes that saw each archive cell."""
    passes: list[LegPass] = field(default_factory=list)
    """What episodes saw and did on the legs that they passed."""


class EpochVectorEnv(Protocol):
    """What the driver calls on a vector environment, beside Gymnasium's methods."""

    runner: int
    """Index of the env runner, set before the first reset. Part of every episode's name."""

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Use the plan from the next `reset` on, which follows: no episode spans two epochs."""
        ...

    def collect(self, *, final: bool) -> RolloutResult:
        """Return what is new; with `final`, first end open episodes and wait until all segments are stored."""
        ...


def next_episodes(results: Sequence[RolloutResult]) -> dict[str, int]:
    """The merged episode counters of all runners."""
    return {place: number for result in results for place, number in result.next_episodes.items()}
