"""Decides the next step of a run: a pure function from the run's view to one decision. It performs nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from services.coordinator.domain.reward_model_selection import select_reward_model
from services.coordinator.domain.run_view import EpochView, RunView
from shared.contracts.epoch import RewardModelRef
from shared.contracts.events import ENDED_STATES, RunState

CARD_GRACE: Final = timedelta(seconds=180)
"""The reward model service trains by quorum after the judges' deadline. Without this time its model is never used."""

MAX_NAMED: Final = 8  # epochs listed in one sentence


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Waits for the trainer: `silence` without a heartbeat, `stop` for the checkpoint of a stopped run."""

    silence: timedelta = timedelta(minutes=15)
    stop: timedelta = timedelta(seconds=50)


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do yet. `reason` is one sentence for users."""

    reason: str


@dataclass(frozen=True, slots=True)
class StartEpoch:
    """Order an epoch, shaped by `reward_model` if there is one."""

    epoch: int
    reward_model: RewardModelRef | None


@dataclass(frozen=True, slots=True)
class ChangeState:
    """Move the run to a state. `epoch` is None if it does not change."""

    state: RunState
    reason: str | None = None
    epoch: int | None = None


Decision = Wait | StartEpoch | ChangeState


def decide(view: RunView, now: datetime, timeouts: Timeouts, silence: timedelta) -> Decision:
    """The next step of this run. `silence` is how long its driver was observed without a new heartbeat."""
    if view.record.state in ENDED_STATES:
        return Wait(f"The run is {view.record.state}.")
    if view.failure is not None:
        return ChangeState("failed", view.failure)
    if view.record.state == "stopping":
        return _stopping(view, now, timeouts)
    current = view.current
    if current is None:
        return StartEpoch(0, None)
    if current.finished is None:
        return _training(current, timeouts, silence)
    return _after_epoch(view, current, now)


def _training(current: EpochView, timeouts: Timeouts, silence: timedelta) -> Decision:
    if silence > timeouts.silence:
        waited = _duration(timeouts.silence)
        return ChangeState("failed", f"The trainer sent no heartbeat in epoch {current.epoch} for {waited}.")
    return Wait(f"Epoch {current.epoch} is training.")


def _duration(time: timedelta) -> str:
    minutes, rest = divmod(time.total_seconds(), 60)
    return f"{minutes:g} minutes" if minutes > 1 and not rest else f"{time.total_seconds():g} seconds"


def _stopping(view: RunView, now: datetime, timeouts: Timeouts) -> Decision:
    current = view.current
    if current is None or current.finished is not None:
        return ChangeState("stopped", view.record.reason)
    if view.stopped_at is not None:
        return ChangeState("stopped", view.record.reason)
    if now - view.record.updated > timeouts.stop:
        return ChangeState("stopped", "Stopped without a new checkpoint: a resume starts from the last one.")
    return Wait(f"Epoch {current.epoch} writes its checkpoint.")


def _after_epoch(view: RunView, current: EpochView, now: datetime) -> Decision:
    if not has_more_epochs(view, current, now):
        return _finish(view, now)
    # With overlap, the trainer waits for the judges of the epoch before: a reward model is at most one epoch old.
    awaited = view.epochs[:-1] if view.record.config.overlap else view.epochs
    unsettled = next((epoch for epoch in awaited[-1:] if not is_settled(epoch, view, now)), None)
    if unsettled is not None:
        return Wait(_missing(unsettled))
    return StartEpoch(current.epoch + 1, select_reward_model(view.epochs, view.record.config))


def _finish(view: RunView, now: datetime) -> Decision:
    unsettled = next((epoch for epoch in view.epochs[-2:] if not is_settled(epoch, view, now)), None)
    if unsettled is not None:
        return Wait(_missing(unsettled))
    incomplete = [epoch.epoch for epoch in view.epochs if not epoch.complete]
    return ChangeState("finished", f"The judges' deadline passed in {_named(incomplete)}." if incomplete else None)


def _named(epochs: Sequence[int]) -> str:
    """Epoch numbers for a sentence. A long run may have thousands."""
    if len(epochs) > MAX_NAMED:
        return f"{len(epochs)} epochs, from {epochs[0]} to {epochs[-1]}"
    return f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {', '.join(map(str, epochs))}"


def has_more_epochs(view: RunView, current: EpochView, now: datetime) -> bool:
    """Whether the run plans another epoch after `current`."""
    config = view.record.config
    if config.run_hours is not None and now - view.record.created >= timedelta(hours=config.run_hours):
        return False
    return config.planned_epochs is None or current.epoch + 1 < config.planned_epochs


def is_settled(epoch: EpochView, view: RunView, now: datetime) -> bool:
    """Whether an epoch is complete, or its judges' deadline and CARD_GRACE have passed."""
    if epoch.finished is None:
        return False
    if epoch.complete:
        return True
    deadline = epoch.finished.document.deadline(view.record.config.judge_deadline_s, view.record.updated)
    return now > deadline + CARD_GRACE


def _missing(epoch: EpochView) -> str:
    listed = len(epoch.finished.document.segments) if epoch.finished else 0
    if epoch.outcomes < listed:
        return f"Epoch {epoch.epoch}: {listed - epoch.outcomes} of {listed} segments wait for their judges."
    return f"Epoch {epoch.epoch} waits for its reward model."
