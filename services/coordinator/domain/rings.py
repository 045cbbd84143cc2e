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


def unheard_orders(view: RunView, now: datetime, quiet: timedelta) -> list[EventData]:
    """What the trainer is told again. `quiet` is how old its driver's last heartbeat must be before that."""
    if view.record.state == "stopping":
        return [state(view.record)]
    current = view.current
    if view.record.state != "running" or current is None or current.finished is not None:
        return []
    silent = now - max(view.last_sign or current.start.document.created, view.record.updated) >= quiet
    return [start_order(current)] if silent else []


def unjudged_epochs(view: RunView, judged: Iterable[str]) -> list[EventData]:
    """What judges and reward model are told again. `judged` names the segments that have an outcome."""
    if view.record.state not in ("running", "stopping"):
        return []
    rings: list[EventData] = []
    for epoch in view.epochs[-2:]:
        if epoch.finished is not None and not epoch.complete:
            rings.append(account(epoch.finished))
            rings += [] if epoch.judged else unjudged(epoch.finished, set(judged))
    return rings


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
