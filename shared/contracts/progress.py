"""Documents about a run for people and tools: one row per finished epoch, live progress, growing summary."""

from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field

from shared.contracts.base import Contract
from shared.contracts.driver import Assistance
from shared.contracts.events import Epoch, RunState
from shared.contracts.ids import Digest, RunId, Tag
from shared.contracts.judging.epoch_report import EpochJudging
from shared.contracts.run import StoredRunConfig

Stage = Literal["starting", "playing", "evaluating", "judging", "teaching"]
"""What a run does in an epoch, in this order: teaching is the training of the reward model."""

MAX_TAGS: Final = 20
MetricName = Annotated[str, Field(max_length=100)]


class ArchivedRoom(Contract):
    """How far a run's archive of states reaches in one room."""

    group: int = Field(ge=0)
    room: int = Field(ge=0)
    cells: int = Field(ge=1, description="places in the room where an episode may begin")
    new_cells: int = Field(ge=0, description="those that this epoch was the first to reach: the frontier")
    visits: int = Field(ge=0, description="episodes that came through each cell, added up")


class ArchiveCoverage(Contract):
    """The rooms of a run's archive of states after an epoch, for map and report."""

    run: RunId
    epoch: Epoch
    rooms: list[ArchivedRoom] = Field(max_length=10_000)


class EpochRow(Contract):
    """The figures of one epoch. segments_recorded = judged + abstained + dead + waiting."""

    epoch: Epoch
    steps: int = Field(ge=0)
    episodes: int = Field(ge=0)
    seconds: float = Field(ge=0, description="wall time of the training part")
    steps_per_s: float | None = Field(None, ge=0)
    segments_recorded: int = Field(ge=0)
    segments_judged: int = Field(ge=0)
    segments_abstained: int = Field(ge=0)
    segments_dead: int = Field(ge=0)
    segments_waiting: int = Field(ge=0, description="recorded, but without an outcome at the time of this row")
    segments_dropped: int = Field(0, ge=0, description="not recorded, because the store was too slow")
    votes: int = Field(ge=0, description="samples of all judges")
    agreement: float | None = Field(None, ge=0, le=1, description="mean share of unanimous dimensions")
    score_mean: float | None = Field(None, ge=0, le=1, description="mean weighted score of judged segments")
    prompt_tokens: int = Field(0, ge=0)
    output_tokens: int = Field(0, ge=0)
    money: float = Field(0, ge=0)
    reward_model: Digest | None = Field(None, description="weights that shaped this epoch, or null")
    reward_model_epoch: Epoch | None = Field(None, description="epoch on whose scores those weights were trained")
    reward_model_accuracy: float | None = Field(
        None, ge=0, le=1, description="held-out accuracy on confident pairs of the model trained after this epoch"
    )
    reward_model_pairs: int | None = Field(None, ge=0, description="held-out confident pairs behind that accuracy")
    reward_model_compared: int | None = Field(
        None, ge=0, description="compared pairs that trained it; null: it learnt from ratings alone"
    )
    reward_model_passed: bool | None = Field(None, description="whether that model may shape the next epoch")
    reason: str | None = Field(
        None, max_length=1_000, description="why that model is not used, e.g. `not used: 28 confident pairs, 50 needed`"
    )
    not_shaped: str | None = Field(None, max_length=1_100, description="why no reward model shaped this epoch")
    alarm: str | None = Field(None, max_length=500, description="why reward models were withdrawn after this epoch")
    judging: EpochJudging | None = Field(None, description="agreement, drift, position bias, correlation, cost")
    stage_seconds: dict[Stage, float] = Field(
        default_factory=dict, description="wall time of each stage, as far as it was measured"
    )
    stopped: bool = False
    metrics: dict[MetricName, float] = Field(default_factory=dict, max_length=300)
    evaluation: dict[MetricName, float] | None = None
    assistance: Assistance | None = Field(None, description="who helped the policy; null where nothing did")


class RunNotes(Contract):
    """What people wrote about a run. Nothing in the system reads it to decide."""

    schema_version: Literal[1] = 1
    run: RunId
    note: str = Field("", max_length=4_000)
    tags: list[Tag] = Field(default_factory=list, max_length=MAX_TAGS, description="sorted, each once")
    updated: AwareDatetime | None = Field(None, description="null until someone writes notes")


class RunSummary(Contract):
    """summary.json: the run's configuration and results. Rewritten after every epoch and at the end."""

    schema_version: Literal[1] = 1
    run: RunId
    state: RunState
    reason: str | None = None
    attempt: int = Field(ge=1)
    config: StoredRunConfig
    created: AwareDatetime
    updated: AwareDatetime
    epochs: list[EpochRow] = Field(max_length=100_000)


class RunProgress(Contract):
    """progress.json: the current state of a run. `updated` is the time of the figures; older than 10 s means stale."""

    schema_version: Literal[1] = 1
    run: RunId
    state: RunState
    doing: str = Field(max_length=500, description="what the run is waiting for")
    stage: Stage | None = Field(None, description="null before the first epoch and after the end")
    stage_share: float | None = Field(None, ge=0, le=1, description="share of the stage that is done, if it is known")
    epoch: Epoch
    epochs_planned: int | None = None
    steps: int = Field(0, ge=0, description="steps done in this epoch")
    epoch_steps: int = Field(ge=1, description="steps of an epoch, rounded up to whole batches")
    steps_per_s: float | None = Field(None, ge=0)
    segments_recorded: int = Field(0, ge=0, description="recorded in this epoch")
    segments_judged: int = Field(0, ge=0)
    segments_abstained: int = Field(0, ge=0)
    segments_dead: int = Field(0, ge=0)
    segments_left: int = Field(0, ge=0)
    votes: int = Field(0, ge=0)
    agreement: float | None = Field(None, ge=0, le=1)
    reward_model_accuracy: float | None = Field(None, ge=0, le=1, description="of the newest reward model")
    eta_s: float | None = Field(
        None, ge=0, description="seconds until the run ends, from the measured times of its stages"
    )
    eta_at_least: bool = Field(False, description="a stage was never measured, so the run takes longer than `eta_s`")
    assistance: Assistance | None = Field(
        None,
        description="who helped the policy in this epoch so far; null where nothing does, and in its first seconds",
    )
    last_sign: AwareDatetime | None = Field(None, description="last heartbeat of the training driver")
    updated: AwareDatetime
