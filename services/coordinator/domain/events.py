"""The event of each commit object of a run."""

from typing import Final

from services.coordinator.domain.run_view import Committed, EpochView
from shared.contracts.base import sha256
from shared.contracts.epoch import EpochFinishedRecord
from shared.contracts.events import EpochFinished, ExportRequested, RmReady, RunChanged, SegmentReady
from shared.contracts.ids import Digest
from shared.contracts.run import RunRecord
from shared.store import keys

SOURCE: Final = "coordinator"


def run_changed(record: RunRecord) -> RunChanged:
    """The event of a revision of a run's record."""
    return RunChanged(
        run=record.run,
        epoch=record.epoch,
        key=keys.run_revision(record.run, record.revision),
        digest=Digest(sha256(record.to_bytes())),
        state=record.state,
    )


def export_requested(place: keys.SegmentPlace, digest: str) -> ExportRequested:
    """The request to export a segment whose archive has this SHA-256."""
    return ExportRequested(
        run=place.run,
        epoch=place.epoch,
        key=keys.segment(*place),
        digest=Digest(digest),
        episode=place.episode,
        segment=place.segment,
    )


def rm_ready(epoch: EpochView) -> RmReady:
    """The event of an epoch's start order."""
    start = epoch.start
    return RmReady.model_validate(
        {"run": start.document.run, "epoch": epoch.epoch, "key": start.key, "digest": start.digest}
    )


def epoch_finished(finished: Committed[EpochFinishedRecord]) -> EpochFinished:
    """The event of a finished epoch."""
    document = finished.document
    return EpochFinished.model_validate(
        {
            "run": document.run,
            "epoch": document.epoch,
            "key": finished.key,
            "digest": finished.digest,
            "segments": len(document.segments),
        }
    )


def segments_ready(finished: Committed[EpochFinishedRecord]) -> list[SegmentReady]:
    """The events of all segments of a finished epoch."""
    document = finished.document
    return [
        SegmentReady(
            run=document.run,
            epoch=document.epoch,
            key=segment.key,
            digest=segment.digest,
            episode=segment.episode,
            segment=segment.segment,
        )
        for segment in document.segments
    ]
