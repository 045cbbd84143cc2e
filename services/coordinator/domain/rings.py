"""Commit objects without a successor, and the events that announce them again. Pure: pacing is the caller's.

A lost event is only a delay, because whoever should have heard it hears it again from here.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from services.coordinator.domain.view import Committed, EpochView, RunView
from shared.contracts.base import sha256
from shared.contracts.epoch import EpochFinishedRecord
from shared.contracts.events import EpochFinished, EventData, RmReady, RunChanged, SegmentReady
from shared.contracts.ids import Digest
from shared.contracts.run import RunRecord
from shared.store import keys


def missing_successors(view: RunView, judged: Iterable[str], now: datetime, quiet: timedelta) -> list[EventData]:
    """Events to publish again. `judged` names the segments of the latest finished epoch that have an outcome.

    `quiet` is how old the driver's last heartbeat must be before its start order is announced again.
    """
    if view.record.state not in ("running", "stopping"):
        return []
    rings: list[EventData] = [state(view.record)] if view.record.state == "stopping" else []
    for epoch in view.epochs[-2:]:
        rings += _of_epoch(view, epoch, set(judged), now, quiet)
    return rings


def _of_epoch(view: RunView, epoch: EpochView, judged: set[str], now: datetime, quiet: timedelta) -> list[EventData]:
    if epoch.finished is None:
        silent = now - max(view.last_sign or epoch.start.document.created, view.record.updated) >= quiet
        return [start_order(epoch)] if silent and view.record.state == "running" else []
    if epoch.complete:
        return []
    if epoch.judged:
        return [account(epoch.finished)]
    return [account(epoch.finished), *unjudged(epoch.finished, judged)]


def state(record: RunRecord) -> RunChanged:
    """The event of the newest revision of a run's record."""
    return RunChanged(
        run=record.run,
        epoch=record.epoch,
        key=keys.run_revision(record.run, record.revision),
        digest=Digest(sha256(record.to_bytes())),
        state=record.state,
    )


def start_order(epoch: EpochView) -> RmReady:
    """The event of an epoch's start order."""
    start = epoch.start
    return RmReady.model_validate(
        {"run": start.document.run, "epoch": epoch.epoch, "key": start.key, "digest": start.digest}
    )


def account(finished: Committed[EpochFinishedRecord]) -> EpochFinished:
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


def unjudged(finished: Committed[EpochFinishedRecord], judged: set[str]) -> list[SegmentReady]:
    """The events of recorded segments that have no outcome."""
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
        if segment.segment not in judged
    ]
