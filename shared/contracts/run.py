"""The configuration of a run (RunConfig) and the coordinator's record of it (RunRecord).

Defaults are those of the original system where it had any. Each field states its effect and unit.
"""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, ValidationError, model_validator

from shared.config.problems import suggestion
from shared.contracts.base import Configuration, Contract
from shared.contracts.events import RunState
from shared.contracts.ids import Digest, RunId, StateName
from shared.contracts.learning.ppo import BEFORE_VIEWS, EARLIER, PpoConfig
from shared.contracts.learning.restarts import ImitationConfig, RestartsConfig, with_least_share
from shared.contracts.learning.reward_learning import LabelsConfig, ShapingConfig

ObservationName = Literal["obs/v2", "obs/v1", "obs/v3", "obs/v4", "pixels/v1"]
ActionsName = Literal["actions/v1", "actions/v2"]
OptionsName = Literal["none", "options/v1", "strike/v1", "strike/v2"]
MemoryName = Literal["none", "gru/v1"]
RewardsName = Literal["default", "events", "explore", "seeds", "sparse"]
Difficulty = Literal["harmless", "normal", "harsh"]
MAX_REASON_LENGTH = 500  # characters
WORLD_PATTERN = r"^(garden|vale|realm|wild:[0-9]{1,9})$"


def _known_world(world: str) -> str:
    if not re.fullmatch(WORLD_PATTERN.strip("^$"), world):
        choices = ("garden", "vale", "realm")
        raise ValueError(f"choose {', '.join(choices)} or wild:NUMBER, e.g. wild:7{suggestion(world, choices)}")
    return world


Game = Literal["bramble", "oracle-of-seasons"]
World = Annotated[str, AfterValidator(_known_world), Field(json_schema_extra={"pattern": WORLD_PATTERN})]
"""A world of Bramble. The pattern is for readers of the schema; the validator gives a better message."""


class SamplingConfig(Configuration):
    """Which segments are recorded and judged: only some, because judging costs more than stepping."""

    share: float = Field(1.0, ge=0, le=1, description="share of finished segments that are recorded")
    milestones: bool = Field(
        True,
        description="also record every segment that reached a milestone; false selects without regard to milestones",
    )
    budget: int = Field(200, ge=1, le=100_000, description="maximum number of segments recorded per epoch")


class PlannerConfig(Configuration):
    """Who acts in dialogs and puzzles. What a planner did is assisted play: the learner does not learn from it."""

    mode: Literal["none", "rules", "model"] = Field(
        "none",
        description="`none`: the policy always acts; `rules`: rules read dialogs, step on buttons and push blocks; "
        "`model`: the language models of the planner file name the macros",
    )
    wait_s: float = Field(
        5.0,
        ge=0,
        le=120,
        description="longest time that an environment stands still for a model's plan, in seconds; the others play on; "
        "0: the policy acts meanwhile",
    )
    min_confidence: float = Field(0.2, ge=0, le=1, description="a model's plan of less confidence is not carried out")
    dialogs: bool = Field(True, description="the planner takes over in dialogs")
    puzzles: bool = Field(True, description="the planner takes over in rooms with an open puzzle")
    dialog_steps: int = Field(300, ge=1, le=100_000, description="longest takeover in a dialog, in steps")
    puzzle_steps: int = Field(600, ge=1, le=100_000, description="longest takeover for a puzzle, in steps")
    cool_down_steps: int = Field(150, ge=0, le=1_000_000, description="steps without a takeover after each one")

    @property
    def has_need(self) -> bool:
        """Whether there is anything that the planner takes over for."""
        return self.dialogs or self.puzzles


class GuidanceConfig(Configuration):
    """Suggestions of models that the policy sees and may follow. The policy always acts itself."""

    mode: Literal["none", "model"] = Field(
        "none",
        description="`none`: no suggestions; `model`: the language models of the planner file suggest actions, and the "
        "observation has a part that shows them",
    )
    text_share: float = Field(0.02, ge=0, le=0.5, description="probability that a step's state is asked about as text")
    vision_share: float = Field(
        0.03, ge=0, le=0.5, description="probability that a step's state is asked about with a picture"
    )
    wait_s: float = Field(
        0.0,
        ge=0,
        le=60,
        description="longest time that the asking environment stands still for a suggestion, in seconds; the others "
        "play on",
    )
    max_in_flight: int = Field(
        2, ge=1, le=1_000, description="questions in flight per env runner; a step drawn beyond it is not asked about"
    )
    text_bonus: float = Field(0.5, ge=0, le=1_000, description="reward for the next action that follows a suggestion")
    vision_bonus: float = Field(1.0, ge=0, le=1_000, description="the same for a suggestion from a picture")
    bonus_share: float = Field(
        0.1, ge=0, le=1, description="the most that bonuses may be of the episode's return without them"
    )

    @property
    def enabled(self) -> bool:
        """Whether the observation has a part for suggestions."""
        return self.mode != "none"

    @property
    def asks(self) -> bool:
        """Whether any step is asked about."""
        return self.enabled and self.text_share + self.vision_share > 0


class RunConfig(Configuration):
    """Everything that defines a run."""

    game: Game = Field("bramble", description="the free game, or `oracle-of-seasons` with your own ROM")
    world: World = Field("vale", description="Bramble world; ignored for other games")
    difficulty: Difficulty = Field(
        "normal",
        description="of Bramble: enemies do no damage (`harmless`), or twice as much (`harsh`), where walkers and the "
        "boss are also twice as fast",
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, strict=True, description="of policy, games and sampling")
    epochs: int | None = Field(None, ge=1, le=100_000, description="epochs to run; default 3 unless run_hours is given")
    run_hours: float | None = Field(None, gt=0, le=10_000, description="hours after which no epoch starts")
    epoch_steps: int = Field(300_000, ge=300, le=1_000_000_000, description="environment steps per epoch")
    episode_length: int = Field(30_000, ge=300, le=10_000_000, description="steps until an episode is truncated")
    terminal_on_death: bool = Field(
        True,
        description="whether an episode ends when the hero dies; false: the episode goes on where the game puts him, "
        "and only the learner's returns end at the death",
    )
    segment_steps: int = Field(300, ge=10, le=5_000, description="steps of a recorded segment")
    frame_skip: int = Field(4, ge=1, le=60, description="emulator frames per step")
    env_runners: int = Field(3, ge=0, le=1_000, description="Ray env runners; 0 samples in the driver")
    envs_per_runner: int = Field(1, ge=1, le=256, description="environments of each env runner")
    batch_size: int = Field(4_096, ge=64, le=10_000_000, description="steps per PPO update")
    learners: int = Field(
        1,
        ge=1,
        le=64,
        description="processes that share each gradient step; each but the first runs on the core of an env runner, "
        "which waits meanwhile",
    )
    eval_interval: int = Field(1, ge=0, le=1_000, description="evaluate every N epochs; 0 never")
    judge_interval: int = Field(
        1,
        ge=1,
        le=1_000,
        description="record and judge segments in epochs 0, N, 2N and so on, and train a reward model after each; "
        "the epochs between use the newest usable one",
    )
    observation: ObservationName = Field(
        "obs/v2",
        description="what the policy sees: `obs/v1` 128 features, `obs/v2` those and the episode's event "
        "counters, `obs/v3` those and the tiles around the hero, `obs/v4` those and what was achieved as flags, "
        "`pixels/v1` pictures",
    )
    actions: ActionsName = Field(
        "actions/v2",
        description="`actions/v2` releases A, B and START within the step, so that games register each press; "
        "`actions/v1` holds them while the action stays the same",
    )
    options: OptionsName = Field(
        "none",
        description="`options/v1`: the policy may also choose macros, each carried out to its end; `strike/v2`: it may "
        "also choose to strike at the nearest enemy; `strike/v1`: the same, as if all enemies were equally large; all "
        "three are assisted play; `none`: it chooses buttons only",
    )
    memory: MemoryName = Field(
        "none",
        description="what the policy remembers of an episode: `gru/v1` 128 units of a recurrent network, or nothing",
    )
    rewards: RewardsName = Field(
        "default",
        description="what pays beside the reward model. `default`: progress first, exploration on the way; `explore`: "
        "exploration alone; `events`: exploration and every kind of event; `sparse`: progress alone; `seeds`: the "
        "original system's rewards",
    )
    rnd: bool = Field(True, description="curiosity; `ppo.curiosity_view` says what is new to it")
    ppo: PpoConfig = Field(PpoConfig(), description="values of PPO")
    shaping: ShapingConfig = Field(ShapingConfig(), description="the reward that the reward model adds")
    sampling: SamplingConfig = Field(SamplingConfig(), description="which segments are recorded and judged")
    labels: LabelsConfig = Field(LabelsConfig(), description="what a reward model learns from")
    planner: PlannerConfig = Field(PlannerConfig(), description="who acts in dialogs and puzzles")
    guidance: GuidanceConfig = Field(GuidanceConfig(), description="suggestions that the policy sees")
    restarts: RestartsConfig = Field(RestartsConfig(), description="episodes that continue from saved states")
    imitation: ImitationConfig = Field(ImitationConfig(), description="imitation of the best judged play")
    starts: dict[StateName, Annotated[float, Field(ge=0.01, le=1)]] = Field(
        {},
        max_length=20,
        description="saved states where training episodes begin, each with its share of episodes; the others begin at "
        "the true start, as every evaluation does (`zelda states list`)",
    )
    overlap: bool = Field(False, description="start the next epoch at epoch.finished with the last good reward model")
    judge_deadline_s: float = Field(
        600, gt=0, le=86_400, description="longest wait for scores after an epoch, in seconds"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.batch_size > self.epoch_steps:
            raise ValueError(
                f"batch_size {self.batch_size} is larger than epoch_steps {self.epoch_steps}: lower batch_size"
            )
        if self.segment_steps > self.episode_length:
            raise ValueError(
                f"segment_steps {self.segment_steps} is larger than episode_length {self.episode_length}: "
                "no segment would be complete"
            )
        if self.guidance.enabled and self.observation == "pixels/v1":
            raise ValueError("guidance is shown beside features, not in pictures: set observation to obs/v2 or obs/v1")
        if self.actions == "actions/v2" and self.frame_skip < 2:
            raise ValueError(
                "frame_skip 1 leaves no frame to release a button in: raise it, or set actions to actions/v1"
            )
        if self.planner.mode != "none" and not self.planner.has_need:
            raise ValueError(
                "planner.mode needs planner.dialogs or planner.puzzles: set one of them to true, or planner.mode to "
                "none"
            )
        if self.ppo.scheduled and self.planned_epochs is None:
            raise ValueError("ppo has a schedule, and run_hours alone plans no steps for it: set epochs")
        if self.options != "none" and (self.planner.mode != "none" or self.guidance.enabled):
            raise ValueError(
                "options need planner.mode none and guidance.mode none: only one of them may choose actions"
            )
        if self.imitation.mode != "none":
            self._can_imitate()
        if self.memory != "none":
            self._can_remember()
        self._can_restart()
        self._can_start()
        return self

    def _can_restart(self) -> None:
        if self.restarts.mode == "backward" and not self.restarts.share:
            raise ValueError(
                "restarts.mode backward needs restarts.share above 0: the share of episodes on the way back"
            )
        if not self.restarts.explore:
            return
        if not self.keeps_archive:
            raise ValueError(
                "restarts.explore begins an archive that this run does not keep: set restarts.share or "
                "imitation.source archive"
            )
        if self.actions != "actions/v2":
            raise ValueError("restarts.explore needs actions/v2, by which exploration presses buttons")

    def _can_start(self) -> None:
        total = sum(self.starts.values())
        if total > 1 + 1e-9:
            raise ValueError(f"starts: the shares sum to {total:g}, and at most 1 is possible: lower one")
        if self.starts and self.keeps_archive:
            raise ValueError(
                "starts needs restarts.share 0 and imitation.source judged: each path of an archive begins at the true "
                "start"
            )

    def _can_remember(self) -> None:
        if self.planner.mode != "none" or self.options != "none":
            raise ValueError(
                "memory needs planner.mode none and options none: the learner leaves out steps that the policy did not "
                "choose, and memory would miss them"
            )
        if self.imitation.mode != "none":
            raise ValueError("memory needs imitation.mode none: recorded play holds no memory")
        if self.learners > 1:
            raise ValueError("memory needs learners 1: several learners divide a minibatch by rows, not by pieces")

    def _can_imitate(self) -> None:
        if self.observation == "pixels/v1":
            raise ValueError("imitation needs recorded observations, and pictures are not recorded: use obs/v2")
        if self.observation in ("obs/v3", "obs/v4") and self.imitation.of_judged:
            raise ValueError(
                "imitation of judged segments needs recorded observations, and surroundings are not recorded: use "
                "obs/v2, or imitation.source archive"
            )
        if self.guidance.enabled:
            raise ValueError("imitation needs guidance.mode none: suggestions are not part of recorded observations")
        if self.learners > 1:
            raise ValueError("imitation needs learners 1: several learners do not share its loss")
        if self.imitation.compares_one and not self.restarts.backward:
            raise ValueError(
                "imitation.mode sil imitates trajectories that return more than the mean of all, and a single one "
                "returns the mean: set imitation.trajectories to 2 or more, or imitation.mode to awr"
            )
        if self.imitation.recovery_share and not (self.restarts.backward and self.imitation.of_archive):
            raise ValueError(
                "imitation.recovery_share shows ways back to the backward curriculum's trajectory: set restarts.share, "
                "restarts.mode backward and imitation.source archive"
            )
        if self.imitation.of_archive and (self.planner.mode != "none" or self.options == "options/v1"):
            raise ValueError(
                "imitation.source archive and both need planner.mode none, and options none or strike/v2: an archive "
                "does not say which of its actions were the policy's"
            )

    @property
    def keeps_archive(self) -> bool:
        """Whether the run fills an archive of states while the policy plays."""
        return bool(self.restarts.share) or self.imitation.of_archive

    @property
    def planned_epochs(self) -> int | None:
        """How many epochs the run has, or None when only its hours are bounded."""
        return self.epochs if self.epochs is not None or self.run_hours is not None else 3

    @property
    def played_steps(self) -> int:
        """The environment steps of an epoch: it ends with a whole batch."""
        return -(-self.epoch_steps // self.batch_size) * self.batch_size

    def judges_epoch(self, epoch: int) -> bool:
        """Whether segments of this epoch are recorded and judged, and a reward model follows it."""
        return epoch % self.judge_interval == 0

    def judged_epochs(self, epochs: int) -> int:
        """How many of the first `epochs` epochs are judged."""
        return -(-epochs // self.judge_interval)


def _with_earlier_values(stored: Any) -> Any:
    """A document older than 2026-11-23 lacks fields of actions and PPO: its run keeps the values that it began with."""
    if not isinstance(stored, dict):
        return stored
    ppo = stored.get("ppo", EARLIER)
    return _without_what_did_nothing(
        {
            "actions": "actions/v1",
            "observation": "obs/v1",
            **stored,
            "restarts": with_least_share(stored.get("restarts", {})),
            "ppo": {**BEFORE_VIEWS, **ppo} if isinstance(ppo, dict) else ppo,
        }
    )


def _without_what_did_nothing(stored: dict[str, Any]) -> dict[str, Any]:
    """A run older than 2026-11-28 may name a planner without a need, or imitate nothing.

    Requests for that are refused now. Such a run plays as before without the planner or the imitation.
    """
    try:
        planner = PlannerConfig.model_validate(stored.get("planner", {}), extra="ignore")
        imitation = ImitationConfig.model_validate(stored.get("imitation", {}), extra="ignore")
        restarts = RestartsConfig.model_validate(stored.get("restarts", {}), extra="ignore")
    except ValidationError:  # the document's own problem, which its reader names
        return stored
    if not planner.has_need:
        stored = {**stored, "planner": planner.model_copy(update={"mode": "none"})}
    if imitation.compares_one and not restarts.backward:
        # Without imitation and restarts nothing reads an archive, so nothing explores for it.
        explore = restarts.explore if restarts.share else 0
        stored = {
            **stored,
            "imitation": imitation.model_copy(update={"mode": "none"}),
            "restarts": restarts.model_copy(update={"explore": explore}),
        }
    return stored


StoredRunConfig = Annotated[RunConfig, BeforeValidator(_with_earlier_values)]
"""A run's configuration within a stored document."""


class RunRecord(Contract):
    """One revision of a run's record. A revision is an object of its own, created once and never changed."""

    run: RunId
    revision: int = Field(ge=0)
    state: RunState
    config: StoredRunConfig
    epoch: int = Field(0, ge=0, description="the current or next epoch")
    fence: int = Field(0, ge=0, description="lease fence of the coordinator that wrote this revision")
    attempt: int = Field(1, ge=1, description="counts resumes")
    external: bool = Field(False, description="trained epoch by epoch with `zelda epoch`: no coordinator moves it on")
    created: AwareDatetime
    updated: AwareDatetime
    reason: str | None = Field(None, max_length=MAX_REASON_LENGTH, description="reason of the state, for users")
    request: Digest | None = Field(
        None, description="SHA-256 of the Idempotency-Key that created the run: only this key owns it"
    )
