"""The states of a run and their transitions. Pure: it reads no clock and writes nothing.

created ─▶ running ─▶ finished          stopping and stopped follow a user's `stop`,
              │  ▲                      failed follows a trainer that gave up;
              ▼  │ resume               `resume` leads from stopped and failed to running.
          stopping ─▶ stopped
"""

from datetime import datetime
from textwrap import shorten
from typing import Final

from shared.contracts.events import RunState
from shared.contracts.run import MAX_REASON_LENGTH, RunRecord
from shared.errors import Permanent, Transient

TRANSITIONS: Final[dict[RunState, frozenset[RunState]]] = {
    "created": frozenset({"running", "stopped", "failed"}),
    "running": frozenset({"stopping", "finished", "failed"}),
    "stopping": frozenset({"stopped", "finished", "failed"}),
    "stopped": frozenset({"running"}),
    "finished": frozenset(),
    "failed": frozenset({"running"}),
}
ACTIVE: Final[frozenset[RunState]] = frozenset({"created", "running", "stopping"})


class RunBusy(Transient):
    """Others change the run at the same time. The message is for users."""


class RunConflict(Permanent):
    """The command conflicts with the state of the run. The message names the state and says what to do instead."""


def advance(
    record: RunRecord,
    state: RunState,
    now: datetime,
    *,
    fence: int,
    reason: str | None = None,
    epoch: int | None = None,
) -> RunRecord:
    """The next revision of `record` in `state`. Raises RunConflict if the transition is not allowed."""
    if state != record.state and state not in TRANSITIONS[record.state]:
        raise RunConflict(f"Run {record.run} is {record.state} and cannot become {state}.")
    change = {
        "revision": record.revision + 1,
        "state": state,
        "epoch": record.epoch if epoch is None else epoch,
        "fence": max(record.fence, fence),
        "updated": now,
        "reason": reason if reason is None else shorten(reason, MAX_REASON_LENGTH, placeholder=" ..."),
    }
    # Validate: an invalid record could not be read again, and the run would be lost.
    return RunRecord.model_validate(record.model_dump() | change)


def stop(record: RunRecord, now: datetime) -> RunRecord | None:
    """The revision after a user's `stop`, or None if the run is already stopping or stopped."""
    _refuse_external(record)
    if record.state in ("stopping", "stopped"):
        return None
    if record.state not in ("created", "running"):
        raise RunConflict(f"Run {record.run} is {record.state}: only a created or running run can be stopped.")
    # A created run has no driver, so there is no checkpoint to wait for.
    state: RunState = "stopped" if record.state == "created" else "stopping"
    return advance(record, state, now, fence=record.fence, reason="Stopped by request.")


def resume(record: RunRecord, now: datetime) -> RunRecord | None:
    """The revision after a user's `resume`, or None if the run is already created or running."""
    _refuse_external(record)
    if record.state in ("created", "running"):
        return None
    if record.state == "finished":
        raise RunConflict(f"Run {record.run} is finished: start a new run instead.")
    if record.state == "stopping":
        raise RunConflict(f"Run {record.run} is still stopping: resume it after it has stopped.")
    resumed = advance(record, "running", now, fence=record.fence, reason=None)
    return resumed.model_copy(update={"attempt": record.attempt + 1})


def _refuse_external(record: RunRecord) -> None:
    if record.external:
        raise RunConflict(f"Run {record.run} is trained by `zelda epoch`: train its next epoch the same way.")
