"""What happens next in a run: one pure function from what is known to one decision. It performs nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from services.coordinator.domain.selection import last_good
from services.coordinator.domain.view import EpochView, RunView
from shared.contracts.epoch import RewardModelRef
from shared.contracts.events import RunState

CARD_GRACE: Final = timedelta(seconds=180)
"""After the judges' deadline a reward model is still trained by quorum; without this wait it would never be used."""

MOST_NAMED: Final = 8  # epochs named one by one in a sentence


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait for the trainer: `silence` without a sign of life, `stop` for a stopped epoch's checkpoint."""

    silence: timedelta = timedelta(minutes=15)
    stop: timedelta = timedelta(seconds=50)


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to decide yet; `reason` is what people see."""

    reason: str


@dataclass(frozen=True, slots=True)
class StartEpoch:
    """Order an epoch, shaped by `reward_model` or by none."""

    epoch: int
    reward_model: RewardModelRef | None


@dataclass(frozen=True, slots=True)
class Enter:
    """The run enters a state; `epoch` is given when that changes, too."""

    state: RunState
    reason: str | None = None
    epoch: int | None = None


Decision = Wait | StartEpoch | Enter


def decide(view: RunView, now: datetime, limits: Limits, silent: timedelta) -> Decision:
    """The one thing to do next in this run. `silent` is how long its driver was watched without a sign of life."""
    if view.record.state in ("stopped", "finished", "failed"):
        return Wait(f"The run is {view.record.state}.")
    if view.failure is not None:
        return Enter("failed", view.failure)
    if view.record.state == "stopping":
        return _stopping(view, now, limits)
    current = view.current
    if current is None:
        return StartEpoch(0, None)
    if current.finished is None:
        return _training(current, limits, silent)
    return _after_epoch(view, current, now)


def _training(current: EpochView, limits: Limits, silent: timedelta) -> Decision:
    if silent > limits.silence:
        waited = _in_words(limits.silence)
        return Enter("failed", f"The trainer gave no sign of life in epoch {current.epoch} for {waited}.")
    return Wait(f"Epoch {current.epoch} is training.")


def _in_words(time: timedelta) -> str:
    minutes, rest = divmod(time.total_seconds(), 60)
    return f"{minutes:g} minutes" if minutes > 1 and not rest else f"{time.total_seconds():g} seconds"


def _stopping(view: RunView, now: datetime, limits: Limits) -> Decision:
    current = view.current
    if current is None or current.finished is not None:
        return Enter("stopped", view.record.reason)
    if view.stopped_at is not None:
        return Enter("stopped", view.record.reason)
    if now - view.record.updated > limits.stop:
        return Enter("stopped", "Stopped; the trainer confirmed no checkpoint, so resuming repeats since its last one.")
    return Wait(f"Epoch {current.epoch} writes its checkpoint.")


def _after_epoch(view: RunView, current: EpochView, now: datetime) -> Decision:
    if not more_epochs(view, current, now):
        return _finish(view, now)
    # Under overlap the trainer does not wait for its own epoch's judges, but for those of the one before:
    # a reward model is at most one epoch old.
    awaited = view.epochs[:-1] if view.record.config.overlap else view.epochs
    open_epoch = next((epoch for epoch in awaited[-1:] if not settled(epoch, view, now)), None)
    if open_epoch is not None:
        return Wait(_what_is_missing(open_epoch))
    return StartEpoch(current.epoch + 1, last_good(view.epochs, view.record.config))


def _finish(view: RunView, now: datetime) -> Decision:
    open_epoch = next((epoch for epoch in view.epochs[-2:] if not settled(epoch, view, now)), None)
    if open_epoch is not None:
        return Wait(_what_is_missing(open_epoch))
    incomplete = [epoch.epoch for epoch in view.epochs if not epoch.complete]
    return Enter("finished", f"Past the judges' deadline in {_named(incomplete)}." if incomplete else None)


def _named(epochs: Sequence[int]) -> str:
    """Epochs in words; a long run may have thousands of them."""
    if len(epochs) > MOST_NAMED:
        return f"{len(epochs)} epochs, the first of them {epochs[0]}, the last {epochs[-1]}"
    return f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {', '.join(map(str, epochs))}"


def more_epochs(view: RunView, current: EpochView, now: datetime) -> bool:
    """Whether the run's plan asks for another epoch after `current`."""
    config = view.record.config
    if config.run_hours is not None and now - view.record.created >= timedelta(hours=config.run_hours):
        return False
    return config.planned_epochs is None or current.epoch + 1 < config.planned_epochs


def settled(epoch: EpochView, view: RunView, now: datetime) -> bool:
    """Whether nothing more is awaited of an epoch: it is complete, or its judges' deadline has passed."""
    if epoch.finished is None:
        return False
    if epoch.complete:
        return True
    deadline = epoch.finished.document.deadline(view.record.config.judge_deadline_s, view.record.updated)
    return now > deadline + CARD_GRACE


def _what_is_missing(epoch: EpochView) -> str:
    listed = len(epoch.finished.document.segments) if epoch.finished else 0
    if epoch.outcomes < listed:
        return f"Epoch {epoch.epoch}: {listed - epoch.outcomes} of {listed} segments wait for their judges."
    return f"Epoch {epoch.epoch} waits for its reward model."
