"""The training driver's reports through the store: heartbeat, stop, failure."""

from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field

from shared.contracts.base import Contract
from shared.contracts.events import Epoch, Key
from shared.contracts.ids import Digest, EpisodeId, RunId

DriverState = Literal["starting", "idle", "training", "evaluating", "ended"]
EVALUATION_S: Final = "evaluation_s"
"""Metric of a finished epoch: the seconds that its evaluation took."""


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
