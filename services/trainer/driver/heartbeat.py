"""The driver's heartbeat: a thread that writes heartbeats and checks whether the driver should exit.

Reasons to exit: the run was stopped, finished or deleted, the process received SIGTERM, or its parent service is gone.
The thread only sets `exit_reason`. The training loop exits between two iterations, so no checkpoint is cut short.
"""

import os
import socket
import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

import structlog

from services.trainer.documents import HEARTBEAT_S, Heartbeat
from services.trainer.driver.driver_store import DriverStore
from shared.contracts.driver import Assistance, DriverState
from shared.contracts.run import RunRecord
from shared.errors import ZeldaError
from shared.store.port import NotFound

log = structlog.get_logger(__name__)

ExitReason = Literal["stop", "over", "deleted", "signal", "orphaned"]


@dataclass(frozen=True)
class DriverProgress:
    """What the training loop reports through the heartbeat."""

    state: DriverState = "starting"
    epoch: int = 0
    attempt: int = 1
    steps: int = 0
    steps_per_s: float | None = None
    evaluated: float = 0.0
    explored: float = 0.0
    assistance: Assistance | None = None


class HeartbeatThread:
    """Writes heartbeats until `close`. `exit_reason` is the first reason to exit, `exit_attempt` its attempt."""

    def __init__(self, driver_store: DriverStore, parent: int | None) -> None:
        self._driver_store = driver_store
        self._parent = parent
        self._progress = DriverProgress()
        self._lock = threading.Lock()  # both the training loop and the thread update
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self.exit_reason: ExitReason | None = None
        self.exit_attempt = self._progress.attempt

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def update(self, **changes: object) -> None:
        """Change fields of the progress. The next heartbeat carries them."""
        with self._lock:
            self._progress = replace(self._progress, **changes)  # type: ignore[arg-type]

    def request_exit(self, reason: ExitReason) -> None:
        """Ask the training loop to exit. The first reason stays, but `deleted` replaces any other."""
        if self.exit_reason is None or reason == "deleted":
            self.exit_attempt = self._progress.attempt
            self.exit_reason = reason

    def check_parent(self) -> None:
        """Request an exit if the service that started this driver is gone."""
        if self._parent is not None and os.getppid() != self._parent:
            self.request_exit("orphaned")

    def close(self) -> None:
        """Write the last heartbeat, with state `ended`."""
        self._closed.set()
        self._thread.join(timeout=20)
        self.update(state="ended")
        self._beat()

    def _run(self) -> None:
        while not self._closed.wait(HEARTBEAT_S):
            self._beat()
            self.check_parent()

    def _beat(self) -> None:
        """Write one heartbeat. Check the record first: a heartbeat must not recreate a deleted run."""
        try:
            self._apply_record(self._driver_store.read_record())
        except NotFound:
            self.request_exit("deleted")
            return
        except ZeldaError as error:
            log.warning("run record unreadable", error=str(error))
        try:
            self._driver_store.write_heartbeat(self._heartbeat())
        except ZeldaError as error:
            log.warning("heartbeat not written", error=str(error))

    def _apply_record(self, record: RunRecord) -> None:
        self.update(attempt=record.attempt)
        if record.state in ("stopping", "stopped"):
            self.request_exit("stop")
        if record.state in ("finished", "failed"):
            self.request_exit("over")

    def _heartbeat(self) -> Heartbeat:
        progress = self._progress
        return Heartbeat(
            run=self._driver_store.run,
            epoch=progress.epoch,
            attempt=progress.attempt,
            steps=progress.steps,
            steps_per_s=progress.steps_per_s,
            time=datetime.now(UTC),
            driver=self._driver_store.driver,
            host=socket.gethostname(),
            pid=os.getpid(),
            state=progress.state,
            evaluated=progress.evaluated,
            explored=progress.explored,
            assistance=progress.assistance,
        )
