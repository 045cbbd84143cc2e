"""The driver's heartbeat: a thread that writes a sign of life and looks whether the driver should end.

Reasons to end: the run was stopped, is over or was deleted, the process got SIGTERM, the service that started it is
gone. It only raises the flag; the training loop ends itself between two iterations, so that a checkpoint is never cut
short.
"""

import os
import socket
import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

import structlog

from services.trainer.documents import HEARTBEAT_S, DriverState, Heartbeat
from services.trainer.driver.driver_store import DriverStore
from shared.contracts.run import RunRecord
from shared.errors import ZeldaError
from shared.store.port import NotFound

log = structlog.get_logger(__name__)

ExitReason = Literal["stop", "over", "deleted", "signal", "orphaned"]


@dataclass(frozen=True)
class DriverProgress:
    """What the training loop tells the heartbeat."""

    state: DriverState = "starting"
    epoch: int = 0
    attempt: int = 1
    steps: int = 0
    epoch_steps: int = 0
    steps_per_s: float | None = None
    segments: int = 0


class HeartbeatThread:
    """Beats until `close`. `leave` holds the first reason to end, or None; `left_attempt` the run's attempt by then."""

    def __init__(self, driver_store: DriverStore, parent: int | None) -> None:
        self._driver_store = driver_store
        self._parent = parent
        self._status = DriverProgress()
        self._changing = threading.Lock()  # the training loop tells, and so does the thread
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self.exit_reason: ExitReason | None = None
        self.exit_attempt = self._status.attempt

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def update(self, **changes: object) -> None:
        """Change some fields of the status; written with the next beat."""
        with self._changing:
            self._status = replace(self._status, **changes)  # type: ignore[arg-type]

    def request_exit(self, reason: ExitReason) -> None:
        """Ask the training loop to end. The first reason stays, unless there is nothing left to work for."""
        if self.exit_reason is None or reason == "deleted":
            self.exit_attempt = self._status.attempt
            self.exit_reason = reason

    def check_parent(self) -> None:
        """Ask to end if the service that started this driver is gone."""
        if self._parent is not None and os.getppid() != self._parent:
            self.request_exit("orphaned")

    def close(self) -> None:
        """Write the last beat, which tells that this driver is gone."""
        self._closed.set()
        self._thread.join(timeout=20)
        self.update(state="ended")
        self._beat()

    def _run(self) -> None:
        while not self._closed.wait(HEARTBEAT_S):
            self._beat()
            self.check_parent()

    def _beat(self) -> None:
        """Look first, because a sign of life would be all that is left of a run that was deleted."""
        try:
            self._apply_record(self._driver_store.read_record())
        except NotFound:
            self.request_exit("deleted")
            return
        except ZeldaError as error:
            log.warning("the run's record was not read", error=str(error))
        try:
            self._driver_store.write_heartbeat(self._heartbeat())
        except ZeldaError as error:
            log.warning("heartbeat failed", error=str(error))

    def _apply_record(self, record: RunRecord) -> None:
        self.update(attempt=record.attempt)
        if record.state in ("stopping", "stopped"):
            self.request_exit("stop")
        if record.state in ("finished", "failed"):
            self.request_exit("over")

    def _heartbeat(self) -> Heartbeat:
        status = self._status
        return Heartbeat(
            run=self._driver_store.run,
            epoch=status.epoch,
            attempt=status.attempt,
            steps=status.steps,
            steps_per_s=status.steps_per_s,
            time=datetime.now(UTC),
            driver=self._driver_store.driver,
            host=socket.gethostname(),
            pid=os.getpid(),
            state=status.state,
            epoch_steps=status.epoch_steps,
            segments=status.segments,
        )
