"""The driver of one run: waits for orders in the store, trains, and stays warm between epochs.

It uses no bus: the trainer service announces what appears in the store. It exits with a checkpoint when the run is
stopped or over, on SIGTERM, or after an idle time; without one when its service is gone or the run was deleted.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable

import structlog

from services.trainer.documents import STALE_S, Heartbeat
from services.trainer.driver.driver_store import DriverStore
from services.trainer.driver.epoch_runner import EpochRunner
from services.trainer.driver.evaluation import Evaluation
from services.trainer.driver.heartbeat import HeartbeatThread
from services.trainer.driver.session import TrainingSession
from services.trainer.settings import DriverGroup
from shared.contracts.epoch import EpochStart
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig

log = structlog.get_logger(__name__)

Make = Callable[[RunId, RunConfig], tuple[TrainingSession, Evaluation]]
CLAIM_S = 1.0  # between two checks of the heartbeat of a driver that may still run
POLL_S = 0.25  # between two polls for an order; it delays the start of every epoch


class Driver:
    """Executes orders of one run until there is a reason to exit."""

    def __init__(self, driver_store: DriverStore, settings: DriverGroup, make: Make, parent: int | None = None) -> None:
        """`make` builds session and evaluation when the first order brings the configuration."""
        self.driver_store = driver_store
        self.settings = settings
        self._make = make
        self.heartbeat = HeartbeatThread(driver_store, parent)
        self.runner: EpochRunner | None = None

    def run(self, former: str | None) -> None:
        """Execute orders until there is a reason to exit. `former` names a driver that is known to have ended."""
        self._claim(former)
        if self.heartbeat.exit_reason is not None:
            return  # without a heartbeat, which would overwrite that of the other driver
        self.heartbeat.start()
        try:
            while (order := self._wait_for_order()) is not None:
                self._execute(order)
            if self.heartbeat.exit_reason == "stop":
                self._confirm_stop()
        finally:
            self.heartbeat.close()
            if self.runner is not None:
                self.runner.close()

    def listen_for_signals(self) -> None:
        """Let SIGTERM and SIGINT mean: finish the iteration, save, exit. A no-op outside the main thread."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.heartbeat.request_exit("signal"))

    def _claim(self, former: str | None) -> None:
        """Wait until no other driver of this run is alive, or until there is a reason to exit.

        The age of a heartbeat is measured on this host's clock: the clock of another host may be wrong.
        """
        seen, since = None, time.monotonic()
        while self.heartbeat.exit_reason is None and (beat := self.driver_store.read_heartbeat()) is not None:
            known_dead = beat.driver in (former, self.driver_store.driver) or not may_run(beat)
            if beat.state in ("ended", "waiting") or known_dead:
                return
            if beat != seen:
                seen, since = beat, time.monotonic()
                log.info("waiting for another driver", other=beat.driver)
            if time.monotonic() - since > STALE_S:
                return
            time.sleep(CLAIM_S)
            self.heartbeat.check_parent()

    def _wait_for_order(self) -> EpochStart | None:
        """The next order, or None when it is time to exit."""
        deadline = time.monotonic() + self.settings.idle_s
        while self.heartbeat.exit_reason is None and time.monotonic() < deadline:
            order = self.driver_store.next_order()
            if order is not None:
                return order
            self.heartbeat.update(state="idle")
            time.sleep(POLL_S)
        return None

    def _execute(self, order: EpochStart) -> None:
        if self.runner is None:
            config = order.config
            session, evaluation = self._make(order.run, config)
            self.listen_for_signals()  # Ray just installed its own handler, which ends the process in mid-step
            self.runner = EpochRunner(self.driver_store, self.heartbeat, session, evaluation)
        self.heartbeat.update(epoch=order.epoch, steps=0)
        self.runner.run(order)

    def _confirm_stop(self) -> None:
        """Commit where the stopped epoch stands. Without an open epoch there is nothing to confirm."""
        order = self.driver_store.next_order()
        if order is None:
            return
        pointer = self.driver_store.checkpoint_pointer(order.epoch)
        steps = pointer.steps if pointer else 0
        # The run may have been resumed since: confirm the attempt that was stopped, not a later one.
        self.driver_store.commit_stop(self.heartbeat.exit_attempt, order.epoch, steps, pointer)
        log.info("stop confirmed", epoch=order.epoch, steps=steps)


def may_run(beat: Heartbeat) -> bool:
    """Whether the process behind a heartbeat may still run. Other hosts cannot be checked: it may."""
    if beat.host != socket.gethostname():
        return True
    try:
        os.kill(beat.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
