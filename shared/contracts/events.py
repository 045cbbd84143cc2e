"""The data of every event. An event says that an object exists: it carries key and digest, never the content."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from shared.contracts.base import Contract
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId

Key = Annotated[str, Field(min_length=1, max_length=512)]
Epoch = Annotated[int, Field(ge=0, le=1_000_000)]
RunState = Literal["created", "running", "stopping", "stopped", "finished", "failed"]
ENDED_STATES: Final[frozenset[RunState]] = frozenset({"stopped", "finished", "failed"})
ScoreStatus = Literal["judged", "abstained", "dead"]


class EventData(Contract):
    """Common fields of all events; `TYPE` is the CloudEvents type, `NAME` the tail of the subject."""

    TYPE: ClassVar[str]
    NAME: ClassVar[str]

    run: RunId
    epoch: Epoch
    key: Key = Field(description="object that this event announces")
    digest: Digest = Field(description="SHA-256 of that object")


class SegmentReady(EventData):
    """The trainer recorded a segment."""

    TYPE: ClassVar[str] = "zelda.segment.ready.v1"
    NAME: ClassVar[str] = "segment.ready"

    episode: EpisodeId
    segment: SegmentId


class ScoresReady(EventData):
    """A segment has its final scores: judged, abstained or dead."""

    TYPE: ClassVar[str] = "zelda.scores.ready.v1"
    NAME: ClassVar[str] = "scores.ready"

    segment: SegmentId
    status: ScoreStatus


class SegmentExported(EventData):
    """The exporter wrote manifest.json, states.jsonl, frames and video of one segment."""

    TYPE: ClassVar[str] = "zelda.segment.exported.v1"
    NAME: ClassVar[str] = "segment.exported"

    episode: EpisodeId
    segment: SegmentId


class ExportRequested(EventData):
    """A user asked for the export of one segment; the object is its archive."""

    TYPE: ClassVar[str] = "zelda.export.requested.v1"
    NAME: ClassVar[str] = "export.requested"

    episode: EpisodeId
    segment: SegmentId


class EpochFinished(EventData):
    """The trainer finished an epoch; the object lists exactly the segments recorded in it."""

    TYPE: ClassVar[str] = "zelda.epoch.finished.v1"
    NAME: ClassVar[str] = "epoch.finished"

    segments: int = Field(ge=0)


class RmTrained(EventData):
    """The reward model of an epoch was trained; the object is its card."""

    TYPE: ClassVar[str] = "zelda.rm.trained.v1"
    NAME: ClassVar[str] = "rm.trained"


class RmReady(EventData):
    """Start this epoch. The object is the epoch's start order, which names the reward model for shaping, if any."""

    TYPE: ClassVar[str] = "zelda.rm.ready.v1"
    NAME: ClassVar[str] = "rm.ready"


class RunChanged(EventData):
    """A run entered another state; the object is the revision of its record."""

    TYPE: ClassVar[str] = "zelda.run.changed.v1"
    NAME: ClassVar[str] = "run.changed"

    state: RunState


EVENTS: tuple[type[EventData], ...] = (
    SegmentReady,
    ScoresReady,
    SegmentExported,
    ExportRequested,
    EpochFinished,
    RmTrained,
    RmReady,
    RunChanged,
)
EVENT_BY_TYPE: dict[str, type[EventData]] = {event.TYPE: event for event in EVENTS}
