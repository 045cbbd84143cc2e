"""What the coordinator knows about a run when it decides: read from commit objects, frozen, complete in itself."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from shared.contracts.base import Contract
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.run import RunRecord

Document = TypeVar("Document", bound=Contract)


@dataclass(frozen=True, slots=True)
class Committed(Generic[Document]):
    """A commit object: where it is, the SHA-256 of its bytes, and what it says."""

    key: str
    digest: str
    document: Document


@dataclass(frozen=True, slots=True)
class EpochView:
    """One epoch by its commit objects. `outcomes` counts listed segments that have a score object."""

    epoch: int
    start: Committed[EpochStart]
    finished: Committed[EpochFinishedRecord] | None = None
    card: Committed[RewardModelCard] | None = None
    outcomes: int = 0

    @property
    def judged(self) -> bool:
        """Whether every segment in the exact list of the epoch has an outcome."""
        return self.finished is not None and self.outcomes >= len(self.finished.document.segments)

    @property
    def complete(self) -> bool:
        """Whether every successor of this epoch exists: outcomes of all segments, and a reward model's card."""
        return self.judged and self.card is not None


@dataclass(frozen=True, slots=True)
class RunView:
    """A run and its epochs, oldest first, without gaps."""

    record: RunRecord
    epochs: tuple[EpochView, ...] = ()
    last_sign: datetime | None = None  # newest heartbeat of the training driver
    failure: str | None = None  # why the driver gave up for good
    stopped_at: datetime | None = None  # when the driver confirmed the stop of this attempt with a checkpoint

    @property
    def current(self) -> EpochView | None:
        """The epoch started last."""
        return self.epochs[-1] if self.epochs else None
