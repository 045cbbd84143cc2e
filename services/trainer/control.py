"""Documents that trainer service and driver exchange through the store, besides the orders and accounts of epochs.

They are this service's own (others may read the heartbeat); losing one costs time, never work.
"""

from datetime import datetime
from typing import Literal

from pydantic import Field

from shared.contracts.base import Contract
from shared.contracts.events import Epoch, Key
from shared.contracts.ids import Digest, RunId
from shared.store import keys

DriverState = Literal["starting", "idle", "training", "evaluating", "ended", "failed"]
HEARTBEAT_S = 2.0  # how often a driver writes; much longer and a dead driver is noticed late
STALE_S = 30.0  # silence after which a driver counts as dead; shorter than one slow store call would kill live ones


class Heartbeat(Contract):
    """Last sign of life of a run's driver. `driver` names the process; another name is another process."""

    run: RunId
    driver: str = Field(max_length=60)
    host: str = Field(max_length=255)
    pid: int
    state: DriverState
    epoch: Epoch = 0
    attempt: int = Field(1, ge=1)
    steps: int = Field(0, ge=0, description="steps done in this epoch")
    epoch_steps: int = Field(0, ge=0)
    steps_per_s: float = Field(0, ge=0, description="of the last iteration, sampling and learning")
    segments: int = Field(0, ge=0, description="segments recorded in this epoch so far")
    error: str | None = Field(None, max_length=500)
    time: datetime


class CheckpointPointer(Contract):
    """The newest checkpoint of an epoch that still runs. Only a checkpoint whose digest stands here is loaded."""

    key: Key
    digest: Digest
    iteration: int = Field(ge=0)
    steps: int = Field(ge=0)


def latest_checkpoint(run: RunId, epoch: int) -> str:
    """Key of the pointer to the newest checkpoint of an epoch."""
    return f"{keys.checkpoint_prefix(run, epoch)}latest.json"


def checkpoint(run: RunId, epoch: int, attempt: int, iteration: int) -> str:
    """Key of one checkpoint. The attempt is in it, because a repeated iteration need not have the same bytes."""
    return f"{keys.checkpoint_prefix(run, epoch)}a{attempt:03d}_i{iteration:06d}.zip"
