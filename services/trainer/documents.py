"""Documents that the trainer service and its drivers exchange through the store, besides those of the contracts.

The heartbeat extends the public one; the checkpoint pointer is private. Losing either costs time, never work.
"""

import re
from typing import Protocol

from pydantic import Field

from shared.contracts.base import Contract
from shared.contracts.driver import DriverHeartbeat, DriverState
from shared.contracts.events import Epoch, Key
from shared.contracts.ids import Digest, Id, RunId
from shared.store import keys

HEARTBEAT_S = 2.0  # how often a driver writes; a longer interval delays the detection of a dead driver
STALE_S = 30.0  # silence after which a driver counts as dead; below a slow store call, live ones do


class DriverName(Id):
    """Name of one driver process. It enters keys, URLs and a job's command line, so its characters are restricted."""

    pattern = re.compile(r"^[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?$")
    shape = "1-60 lower-case letters, digits or inner hyphens"


class Heartbeat(DriverHeartbeat):
    """The newest heartbeat of a run's driver. Each driver process has a name of its own."""

    driver: DriverName
    host: str = Field(max_length=255)
    pid: int
    state: DriverState


class StoredObject(Protocol):
    """A reference to an object of the store, as many documents hold it. Whoever reads the object checks its digest."""

    @property
    def key(self) -> str:
        """The object's key."""
        ...

    @property
    def digest(self) -> str:
        """The SHA-256 of its bytes."""
        ...


class CheckpointPointer(Contract):
    """Names the newest checkpoint of a running epoch. The driver loads only a checkpoint with this digest."""

    run: RunId
    epoch: Epoch
    key: Key
    digest: Digest
    iteration: int = Field(ge=0)
    steps: int = Field(ge=0)


def latest_checkpoint_key(run: RunId, epoch: int) -> str:
    """Key of the pointer to the newest checkpoint of an epoch."""
    return f"{keys.checkpoint_prefix(run, epoch)}latest.json"


def checkpoint_key(run: RunId, epoch: int, driver: str, iteration: int, digest: str) -> str:
    """Key of the checkpoint with this SHA-256.

    The digest is part of the key, so a second save of one iteration never overwrites the bytes that the pointer names.
    """
    return f"{keys.checkpoint_prefix(run, epoch)}{driver}_{iteration:06d}_{digest[:16]}.zip"
