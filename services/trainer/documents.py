"""What trainer service and driver tell each other through the store, besides the orders and accounts of epochs.

The heartbeat is the public one with a few fields more; the pointer is ours alone. Losing either costs time, never work.
"""

import re
from typing import Literal

from pydantic import Field

from shared.contracts.base import Contract
from shared.contracts.driver import DriverHeartbeat
from shared.contracts.events import Epoch, Key
from shared.contracts.ids import Digest, Id, RunId
from shared.store import keys

DriverState = Literal["starting", "idle", "training", "evaluating", "ended"]
HEARTBEAT_S = 2.0  # how often a driver writes; much longer and a dead driver is noticed late
STALE_S = 30.0  # silence after which a driver counts as dead; shorter than one slow store call would kill live ones


class DriverName(Id):
    """One driver process. Its name goes into keys, addresses and the command line of a job: an id closes them all."""

    pattern = re.compile(r"^[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?$")
    shape = "1-60 lower-case letters, digits or inner hyphens"


class Heartbeat(DriverHeartbeat):
    """Last sign of life of a run's driver. `driver` names the process; another name is another process."""

    driver: DriverName
    host: str = Field(max_length=255)
    pid: int
    state: DriverState
    epoch_steps: int = Field(0, ge=0)
    segments: int = Field(0, ge=0, description="segments recorded in this epoch so far")


class CheckpointPointer(Contract):
    """The newest checkpoint of an epoch that still runs. Only a checkpoint whose digest stands here is loaded."""

    run: RunId
    epoch: Epoch
    key: Key
    digest: Digest
    iteration: int = Field(ge=0)
    steps: int = Field(ge=0)


def latest_checkpoint(run: RunId, epoch: int) -> str:
    """Key of the pointer to the newest checkpoint of an epoch."""
    return f"{keys.checkpoint_prefix(run, epoch)}latest.json"


def checkpoint(run: RunId, epoch: int, driver: str, iteration: int, digest: str) -> str:
    """Key of the checkpoint with this SHA-256. Other bytes never have its key: the pointer may still name the former
    one when its successor of the same iteration is put.
    """
    return f"{keys.checkpoint_prefix(run, epoch)}{driver}_{iteration:06d}_{digest[:16]}.zip"
