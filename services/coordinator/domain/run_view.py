"""The input of every decision: what the commit objects say about one run."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from shared.contracts.base import Contract
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import ArchiveDemonstrations, ArchiveRef, EpochFinishedRecord, EpochStart
from shared.contracts.run import RunRecord

Document = TypeVar("Document", bound=Contract)


@dataclass(frozen=True, slots=True)
class Committed(Generic[Document]):
    """A commit object: its key, the SHA-256 of its bytes, and its parsed content."""

    key: str
    digest: str
    document: Document


@dataclass(frozen=True, slots=True)
class EpochView:
    """The commit objects of one epoch. `outcomes` counts its listed segments that have a score object."""

    epoch: int
    start: Committed[EpochStart]
    finished: Committed[EpochFinishedRecord] | None = None
    card: Committed[RewardModelCard] | None = None
    outcomes: int = 0

    @property
    def judged(self) -> bool:
        """Whether every listed segment of the epoch has an outcome."""
        return self.finished is not None and self.outcomes >= len(self.finished.document.segments)

    @property
    def awaits_model(self) -> bool:
        """Whether the order lets a reward model follow this epoch, and it has no card yet."""
        return self.card is None and self.start.document.config.judges_epoch(self.epoch)

    @property
    def complete(self) -> bool:
        """Whether nothing more follows: all segments have outcomes, and the reward model has its card."""
        return self.judged and not self.awaits_model


@dataclass(frozen=True, slots=True)
class RunView:
    """A run and its epochs, oldest first, without gaps."""

    record: RunRecord
    epochs: tuple[EpochView, ...] = ()
    last_heartbeat: datetime | None = None  # of the training driver
    failure: str | None = None  # why the driver gave up
    stopped_at: datetime | None = None  # when the driver wrote the checkpoint of this attempt's stop

    @property
    def current(self) -> EpochView | None:
        """The newest epoch."""
        return self.epochs[-1] if self.epochs else None

    def archive_before(self, epoch: int) -> ArchiveRef | None:
        """The archive of states as the epoch before this one left it; None without one."""
        before = self._finished_before(epoch)
        return None if before is None else before.archive

    def demonstrations_before(self, epoch: int) -> ArchiveDemonstrations | None:
        """What the epoch before this one chose from the archive for it; None without a choice."""
        before = self._finished_before(epoch)
        return None if before is None else before.demonstrations

    def _finished_before(self, epoch: int) -> EpochFinishedRecord | None:
        before = self.epochs[epoch - 1].finished if 0 < epoch <= len(self.epochs) else None
        return None if before is None else before.document
