"""The training driver's reports through the store: heartbeat, who helped the policy, stop, failure."""

from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field, NonNegativeInt

from shared.contracts.base import Contract
from shared.contracts.events import Epoch, Key
from shared.contracts.ids import Digest, EpisodeId, RunId

DriverState = Literal["waiting", "starting", "idle", "exploring", "training", "evaluating", "ended"]
"""`waiting`: the run has no driver yet, because all places are taken."""
EVALUATION_S: Final = "evaluation_s"
"""Metric of a finished epoch: the seconds that its evaluation took."""


Need = Literal["dialog", "puzzle"]
"""What a takeover is for."""
Ending = Literal["cleared", "finished", "given_up", "timeout", "hp_drop", "cut"]
"""Why a takeover ended. `cleared`: what began it is gone. `finished`: the planner carried out its whole plan.
`cut`: the episode ended first."""
QuestionMode = Literal["dialog", "puzzle", "text", "vision"]
"""What is asked: a plan for a dialog or a puzzle, or a suggestion from the state alone or with a picture."""
AnswerStatus = Literal["answered", "invalid", "unavailable", "refused", "exhausted", "busy", "paused"]
"""`invalid`: not one whole reply. `exhausted`: the budget of the epoch. `paused`: not asked."""
SuggestionOutcome = Literal["taken", "not_taken", "stale", "missing", "skipped"]
"""`taken`: the next action of the policy was the suggested one. `stale`: the answer came too late, or for another room.
`missing`: no valid answer came. `skipped`: a drawn step that was not asked about."""
BreakerState = Literal["closed", "half-open", "open"]
BREAKER_NUMBERS: Final[dict[BreakerState, int]] = {"closed": 0, "half-open": 1, "open": 2}
"""The states as metrics show them."""

NEEDS: Final[tuple[Need, ...]] = ("dialog", "puzzle")
"""In the order of precedence: a dialog stops everything else."""
ENDINGS: Final[tuple[Ending, ...]] = ("cleared", "finished", "given_up", "timeout", "hp_drop", "cut")
SUCCESSES: Final[frozenset[Ending]] = frozenset({"cleared", "finished"})
QUESTION_MODES: Final[tuple[QuestionMode, ...]] = ("dialog", "puzzle", "text", "vision")
COUNTED_STATUSES: Final[tuple[AnswerStatus, ...]] = (
    "answered",
    "invalid",
    "unavailable",
    "refused",
    "exhausted",
    "busy",
)
"""Of questions that reach the planning process; `paused` ones do not."""
SUGGESTION_OUTCOMES: Final[tuple[SuggestionOutcome, ...]] = ("taken", "not_taken", "stale", "missing", "skipped")


class ModelCalls(Contract):
    """The questions of one mode in an epoch, and the route that answers them."""

    outcomes: dict[AnswerStatus, NonNegativeInt] = Field(description="questions by what became of them")
    answer_seconds_mean: float | None = Field(None, ge=0, description="mean time of an answer; null without one")
    breaker: BreakerState = "closed"


class Assistance(Contract):
    """Sums over the ended episodes of an epoch, and the calls of its planning process."""

    takeovers: dict[Need, dict[Ending, NonNegativeInt]] = Field(
        default_factory=dict, description="by what they were for and how they ended; empty without a planner"
    )
    suggestions: dict[SuggestionOutcome, NonNegativeInt] = Field(
        default_factory=dict, description="by outcome; empty without guidance"
    )
    calls: dict[QuestionMode, ModelCalls] = Field(
        default_factory=dict, description="by mode; empty without models, and until the planning process reports"
    )


class DriverHeartbeat(Contract):
    """heartbeat.json: overwritten every few seconds. `steps` counts within the epoch."""

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    attempt: int = Field(1, ge=1)
    steps: int = Field(0, ge=0)
    steps_per_s: float | None = Field(None, ge=0)
    state: DriverState = Field("training", description="earlier versions do not name it")
    evaluated: float = Field(0, ge=0, le=1, description="share of the evaluation that is done")
    explored: float = Field(0, ge=0, le=1, description="share of the exploration before the first epoch that is done")
    assistance: Assistance | None = Field(None, description="of this epoch so far; null where nothing helps")
    time: AwareDatetime


class DriverStopped(Contract):
    """Created after a stop request was fulfilled: a resumed run continues the epoch from this checkpoint."""

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    attempt: int = Field(ge=1, description="attempt of the run record that requested the stop")
    steps: int = Field(ge=0, description="steps of the epoch that are in the checkpoint")
    checkpoint_key: Key | None = Field(None, description="None: stopped before the first step")
    checkpoint_digest: Digest | None = None
    time: AwareDatetime


class DriverFailed(Contract):
    """Created when the driver has failed too often to restart; `reason` is one sentence for users."""

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    attempt: int = Field(ge=1)
    reason: str = Field(max_length=500)
    time: AwareDatetime


class LiveMilestone(Contract):
    """One milestone of the game, and whether the episode has reached it."""

    name: str = Field(max_length=200)
    reached: bool


class LiveFrame(Contract):
    """live/frame.json: what one environment shows now. Overwritten while someone watches; nothing decides by it."""

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    runner: int = Field(ge=0)
    episode: EpisodeId
    step: int = Field(ge=0, description="step of the episode")
    time: AwareDatetime
    png: str = Field(max_length=200_000, pattern=r"^[A-Za-z0-9+/]+={0,2}$", description="the screen as PNG, in base64")
    group: int
    room: int
    health: int = Field(description="quarters of a heart")
    max_health: int
    items: dict[Annotated[str, Field(max_length=40)], int] = Field(max_length=40)
    milestones: list[LiveMilestone] = Field(max_length=500)
    reward: float = Field(description="sum over the episode, without shaping")
    checkpoint: Digest | None = Field(None, description="the policy that acts; null before the first checkpoint")
    reward_model: Digest | None = Field(None, description="the weights that shape the rewards")
