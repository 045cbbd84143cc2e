"""The state machine of a run. Pure: it says which state follows, never reads a clock and never writes anything.

created ─▶ running ─▶ finished          stopping and stopped come from a person's `stop`,
              │  ▲                      failed from a trainer that gave up;
              ▼  │ resume               `resume` leads back to running from stopped and from failed.
          stopping ─▶ stopped
"""

from datetime import datetime
from textwrap import shorten
from typing import Final

from shared.contracts.events import RunState
from shared.contracts.run import LONGEST_REASON, RunRecord
from shared.errors import Permanent

FOLLOWS: Final[dict[RunState, frozenset[RunState]]] = {
    "created": frozenset({"running", "stopped", "failed"}),
    "running": frozenset({"stopping", "finished", "failed"}),
    "stopping": frozenset({"stopped", "finished", "failed"}),
    "stopped": frozenset({"running"}),
    "finished": frozenset(),
    "failed": frozenset({"running"}),
}
ACTIVE: Final[frozenset[RunState]] = frozenset({"created", "running", "stopping"})


class WrongState(Permanent):
    """The command does not fit the run's state. The message names the state and what can be done instead."""


def advance(
    record: RunRecord,
    state: RunState,
    now: datetime,
    *,
    fence: int,
    reason: str | None = None,
    epoch: int | None = None,
) -> RunRecord:
    """The next revision of `record` in `state`; raise WrongState if that state cannot follow."""
    if state != record.state and state not in FOLLOWS[record.state]:
        raise WrongState(f"run {record.run} is {record.state} and cannot become {state}.")
    change = {
        "revision": record.revision + 1,
        "state": state,
        "epoch": record.epoch if epoch is None else epoch,
        "fence": max(record.fence, fence),
        "updated": now,
        "reason": reason if reason is None else shorten(reason, LONGEST_REASON, placeholder=" ..."),
    }
    # Checked, because a record that nobody can read would be the end of its run.
    return RunRecord.model_validate(record.model_dump() | change)


def stop(record: RunRecord, now: datetime) -> RunRecord | None:
    """The revision that a person's `stop` leads to, or None if the run is stopping or stopped already."""
    if record.state in ("stopping", "stopped"):
        return None
    if record.state not in ("created", "running"):
        raise WrongState(f"Run {record.run} is {record.state}: only a run that is created or running can be stopped.")
    # Nothing was started for a created run, so there is nothing to wait for.
    following: RunState = "stopped" if record.state == "created" else "stopping"
    return advance(record, following, now, fence=record.fence, reason="Stopped by request.")


def resume(record: RunRecord, now: datetime) -> RunRecord | None:
    """The revision that a person's `resume` leads to, or None if the run is under way already."""
    if record.state in ("created", "running"):
        return None
    if record.state == "finished":
        raise WrongState(f"Run {record.run} is finished: start a new run instead.")
    if record.state == "stopping":
        raise WrongState(f"Run {record.run} is still stopping: resume it when it is stopped.")
    resumed = advance(record, "running", now, fence=record.fence, reason=None)
    return resumed.model_copy(update={"attempt": record.attempt + 1})
