"""Selects the events to republish: those of commit objects without a successor. Pure; the caller decides when."""

from collections.abc import Container
from datetime import datetime, timedelta

from services.coordinator.domain.events import epoch_finished, rm_ready, run_changed, segments_ready
from services.coordinator.domain.run_view import RunView
from shared.contracts.events import EventData


def orders_to_republish(view: RunView, now: datetime, quiet: timedelta) -> list[EventData]:
    """Orders that the trainer may have missed: the start of an epoch after `quiet` without a heartbeat, or a stop."""
    if view.record.state == "stopping":
        return [run_changed(view.record)]
    current = view.current
    if view.record.state != "running" or current is None or current.finished is not None:
        return []
    last_activity = max(view.last_heartbeat or current.start.document.created, view.record.updated)
    return [rm_ready(current)] if now - last_activity >= quiet else []


def judging_to_republish(view: RunView, judged: Container[str]) -> list[EventData]:
    """What judges and reward model may have missed: finished epochs, and their segments that are not `judged`."""
    if view.record.state not in ("running", "stopping"):
        return []
    events: list[EventData] = []
    for epoch in view.epochs[-2:]:
        if epoch.finished is not None and not epoch.complete:
            events.append(epoch_finished(epoch.finished))
            if not epoch.judged:
                events += [event for event in segments_ready(epoch.finished) if event.segment not in judged]
    return events
