"""The two documents of an epoch: the coordinator's start order and the trainer's record of the finished epoch."""

from datetime import datetime, timedelta
from typing import Annotated, Final

from pydantic import AwareDatetime, Field

from shared.contracts.base import Contract
from shared.contracts.driver import Assistance
from shared.contracts.events import Epoch, Key
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId, StateName
from shared.contracts.run import Difficulty, Game, StoredRunConfig, World


class RewardModelRef(Contract):
    """A reference to a reward model: keys and digests of its weights and its card."""

    epoch: Epoch = Field(description="epoch whose scores it was trained on")
    weights_key: Key
    weights_digest: Digest
    card_key: Key
    card_digest: Digest


class ArchiveRef(Contract):
    """The newest pack of a run's state archive; each pack names the one before it."""

    key: Key
    digest: Digest


class SavedState(Contract):
    """A state of a game that a user saved, created once: its name never means another one."""

    name: StateName
    key: Key = Field(description="object with the compressed state of the emulator")
    digest: Digest = Field(description="its SHA-256")
    game: Game
    world: World = Field(description="of Bramble; other games have none, and ignore it")
    difficulty: Difficulty = Field(description="of Bramble")
    seed: int = Field(ge=0, description="of the run whose ROM was played: Bramble's ROM holds it")
    rom: Digest = Field(description="SHA-256 of the ROM image")
    emulator: str = Field(max_length=100, description="the emulator that saved it, with its version")
    place: str = Field(max_length=100, description="where the hero is: group and room")
    milestones: int = Field(ge=0, description="milestones that hold in it")
    source: str = Field(max_length=300, description="what it was saved from")
    created: AwareDatetime


class ImitatedSegment(Contract):
    """A judged segment of an earlier epoch that the policy imitates."""

    segment: SegmentId
    key: Key
    digest: Digest
    score: float = Field(ge=0, le=1, description="its weighted score")


class Imitation(Contract):
    """What an epoch imitates. The order pins it, so a repeated epoch learns the same."""

    baseline: float = Field(ge=0, le=1, description="mean score of all judged segments that were compared")
    segments: list[ImitatedSegment] = Field(min_length=1, max_length=1_000)


class TrajectoryRef(Contract):
    """A trajectory of the run's state archive: all actions from the true start to the state of an entry."""

    entry: int = Field(ge=0, description="number of the archive's entry that it leads to")
    steps: int = Field(ge=1, description="its actions")
    key: Key
    digest: Digest


ARRIVED_LEFT: Final = 0.15  # of a trajectory's steps: some legs are hard with the few hearts that it has there


class BackwardStage(Contract):
    """Where the backward curriculum stands on the trajectory that is its demonstration."""

    trajectory: TrajectoryRef
    left: list[Annotated[int, Field(ge=0)]] = Field(
        min_length=1,
        max_length=10_000,
        description="for each leg of the trajectory: from so many steps after its beginning the policy reaches its "
        "goal, and the epoch's episodes begin before that",
    )
    success: list[Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=list,
        max_length=10_000,
        description="for each leg, once the curriculum has arrived: the share of episodes that pass it; more of the "
        "next epoch's episodes begin where fewer do",
    )

    @property
    def arrived(self) -> bool:
        """Whether the policy reaches the goals from almost everywhere: what is left it learns on its own way there."""
        return sum(self.left) <= ARRIVED_LEFT * self.trajectory.steps


class PassesRef(Contract):
    """What was seen and done on legs of the demonstration: by the episodes of one epoch, or on ways back to it."""

    passes: int = Field(ge=1, description="how many there are")
    key: Key
    digest: Digest


class ArchiveDemonstrations(Contract):
    """What an epoch learns from the state archive. The order pins it, so a repeated epoch learns the same."""

    imitated: list[TrajectoryRef] = Field(
        default_factory=list, max_length=100, description="trajectories that the policy imitates"
    )
    backward: BackwardStage | None = Field(None, description="the backward curriculum; None: it has no goal")
    passes: list[PassesRef] = Field(
        default_factory=list,
        max_length=10,
        description="once the curriculum has arrived: the policy's own passes of its legs in the last epochs, and ways "
        "back that its lost episodes were shown; it imitates them",
    )
    recoveries: PassesRef | None = Field(
        None, description="ways back to the curriculum's trajectory, which the policy imitates"
    )


class ExploredArchive(Contract):
    """What the exploration before the first epoch found. Created once: a repeated epoch begins with the same."""

    run: RunId
    steps: int = Field(ge=0, description="steps of the exploration")
    seconds: float = Field(ge=0, description="wall time of all drivers that explored and shortened the path")
    cells: int = Field(ge=0, description="cells of the exploration's own archive")
    path_steps: int = Field(ge=0, description="steps of the path that begins the run's archive")
    archive: ArchiveRef
    demonstrations: ArchiveDemonstrations | None = Field(None, description="what the first epoch learns from the path")
    created: AwareDatetime


class EpochStart(Contract):
    """Commit object of `rm.ready`. Created once per epoch: a second coordinator cannot order it twice."""

    run: RunId
    epoch: Epoch
    fence: int = Field(ge=0)
    config: StoredRunConfig
    reward_model: RewardModelRef | None = Field(None, description="None: no reward model passed its gates yet")
    archive: ArchiveRef | None = Field(None, description="states where episodes may begin; None: the true start only")
    imitation: Imitation | None = Field(None, description="judged play that the policy imitates; None: nothing")
    demonstrations: ArchiveDemonstrations | None = Field(
        None, description="what the epoch learns from the archive's trajectories; None: nothing"
    )
    starts: list[SavedState] = Field(
        default_factory=list, max_length=20, description="the saved states that the run's `starts` name, as they were"
    )
    created: AwareDatetime


class SegmentRef(Contract):
    """One recorded segment in the exact list of an epoch."""

    segment: SegmentId
    episode: EpisodeId
    key: Key
    digest: Digest


class EpochFinishedRecord(Contract):
    """Commit object of `epoch.finished`. Completeness is decided against `segments`, never by counting events."""

    run: RunId
    epoch: Epoch
    fence: int = Field(ge=0)
    attempt: int = Field(1, ge=1, description="how often the driver was started for this epoch")
    stopped: bool = Field(False, description="the epoch was cut short by a stop request and will be resumed")
    steps: int = Field(ge=0, description="environment steps in this epoch")
    episodes: int = Field(ge=0)
    seconds: float = Field(ge=0, description="wall time of the epoch")
    segments: list[SegmentRef] = Field(max_length=100_000)
    segments_dropped: int = Field(0, ge=0, description="segments that a slow store made the recorder drop")
    checkpoint_key: Key
    checkpoint_digest: Digest
    reward_model: Digest | None = Field(None, description="digest of the reward model weights that shaped this epoch")
    archive: ArchiveRef | None = Field(None, description="the archive of states after this epoch, if the run keeps one")
    demonstrations: ArchiveDemonstrations | None = Field(
        None, description="what the next epoch learns from the trajectories of that archive; None: nothing"
    )
    metrics: dict[Annotated[str, Field(max_length=100)], float] = Field(
        default_factory=dict,
        max_length=300,
        description="learning and episode metrics, e.g. `return_mean`, `reward/coverage`",
    )
    evaluation: dict[Annotated[str, Field(max_length=100)], float] | None = Field(
        None, description="same, without exploration"
    )
    assistance: Assistance | None = Field(None, description="who helped the policy; null where nothing did")
    created: AwareDatetime

    def deadline(self, judge_deadline_s: float, changed: datetime | None = None) -> datetime:
        """Until when scores are waited for. It counts from the epoch's end, so that no restart prolongs it.

        `changed` is when the run's record was last changed: who resumes a run gives its judges their whole time again.
        """
        since = self.created if changed is None else max(self.created, changed)
        return since + timedelta(seconds=judge_deadline_s)
