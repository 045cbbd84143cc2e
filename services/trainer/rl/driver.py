"""The driver process of one run: waits for orders in the store, trains, and stays warm between epochs.

It knows no bus: the trainer service beside it announces what appears in the store. It ends when the run is stopped or
over, on SIGTERM, or when no order came for a while, always with a checkpoint behind it; and, without one, when its
service is gone or the run was deleted.
"""

import argparse
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable

import structlog

from services.trainer.control import STALE_S, DriverName, Heartbeat
from services.trainer.rl.archive import Archive
from services.trainer.rl.bridge import BlockingStore
from services.trainer.rl.epochs import EpochRunner
from services.trainer.rl.evaluation import Evaluation
from services.trainer.rl.game import Unplayable, evaluation_of, session_of, stop_ray
from services.trainer.rl.pulse import Pulse
from services.trainer.rl.session import Session
from services.trainer.settings import DriverGroup, DriverSettings
from shared.contracts.epoch import EpochStart
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.errors import ZeldaError
from shared.runtime import failpoints
from shared.runtime.configure import EXIT_CONFIG, read
from shared.runtime.leave import leave
from shared.runtime.logging import setup_logging
from shared.store.open import open_store

log = structlog.get_logger(__name__)

Make = Callable[[RunId, RunConfig], tuple[Session, Evaluation]]
EXIT_FAILED = 1  # another driver may do better; not so after EXIT_CONFIG
CLAIM_S = 1.0  # between two looks at the heartbeat of a driver that may still live
POLL_S = 0.25  # between two looks for an order; more would be felt as a pause between epochs


class Driver:
    """One life of a driver."""

    def __init__(self, archive: Archive, settings: DriverGroup, make: Make, parent: int | None = None) -> None:
        """`make` builds session and evaluation when the first order has told the configuration."""
        self.archive = archive
        self.settings = settings
        self._make = make
        self.pulse = Pulse(archive, parent)
        self.runner: EpochRunner | None = None

    def run(self, former: str | None) -> None:
        """Carry out orders until there is a reason to leave. `former` names a driver known to be dead."""
        self._claim(former)
        if self.pulse.leave is not None:
            return  # without a sign of life, which would hide that of the other driver
        self.pulse.start()
        try:
            while (order := self._wait_for_order()) is not None:
                self._carry_out(order)
            if self.pulse.leave == "stop":
                self._confirm_stop()
        finally:
            self.pulse.close()
            if self.runner is not None:
                self.runner.evaluation.close()
                self.runner.session.close()

    def listen_for_signals(self) -> None:
        """From now on SIGTERM and SIGINT mean: finish the iteration, save, leave. Only the main thread can do this."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.pulse.end("signal"))

    def _claim(self, former: str | None) -> None:
        """Wait until no other driver of this run is alive, or until there is a reason to leave.

        How long a heartbeat has stood there is told by our own clock: that of another host may be wrong.
        """
        seen, since = None, time.monotonic()
        while self.pulse.leave is None and (beat := self.archive.heartbeat()) is not None:
            known_dead = beat.driver in (former, self.archive.driver) or not might_live(beat)
            if beat.state == "ended" or known_dead:
                return
            if beat != seen:
                seen, since = beat, time.monotonic()
                log.info("waiting for the former driver", driver=beat.driver)
            if time.monotonic() - since > STALE_S:
                return
            time.sleep(CLAIM_S)
            self.pulse.mind_parent()

    def _wait_for_order(self) -> EpochStart | None:
        """The next order, or None when it is time to leave."""
        deadline = time.monotonic() + self.settings.idle_s
        while self.pulse.leave is None and time.monotonic() < deadline:
            order = self.archive.next_order()
            if order is not None:
                return order
            self.pulse.tell(state="idle")
            time.sleep(POLL_S)
        return None

    def _carry_out(self, order: EpochStart) -> None:
        if self.runner is None:
            config = order.config
            session, evaluation = self._make(order.run, config)
            self.listen_for_signals()  # Ray has just put its own handler there, which would end us in mid-step
            self.runner = EpochRunner(self.archive, self.pulse, session, evaluation, tuple(self.settings.curriculum))
        self.pulse.tell(epoch=order.epoch, steps=0, epoch_steps=order.config.epoch_steps)
        self.runner.run(order)

    def _confirm_stop(self) -> None:
        """Tell where the stopped epoch stands. Without an open epoch there is nothing to confirm."""
        order = self.archive.next_order()
        if order is None:
            return
        pointer = self.archive.pointer(order.epoch)
        steps = pointer.steps if pointer else 0
        # The run may have been resumed since: a later stop was asked of nobody yet.
        self.archive.stopped(self.pulse.left_attempt, order.epoch, steps, pointer)
        log.info("stopped by request", epoch=order.epoch, steps=steps)


def might_live(beat: Heartbeat) -> bool:
    """Whether the process behind a heartbeat may still run; known only on its own host."""
    if beat.host != socket.gethostname():
        return True
    try:
        os.kill(beat.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def main(argv: list[str] | None = None) -> int:
    """Entry point: settings from the environment, the run from the arguments."""
    arguments = _parser().parse_args(argv)
    settings, problems = read(DriverSettings)
    if settings is None or problems:
        sys.stderr.write("".join(f"driver: {problem}\n" for problem in problems))
        return EXIT_CONFIG
    setup_logging("driver", settings.log)
    failpoints.arm()
    name = arguments.name or uuid.uuid4().hex[:12]
    structlog.contextvars.bind_contextvars(run=str(arguments.run), driver=name)
    store = BlockingStore(open_store(settings.store))

    def make(run: RunId, config: RunConfig) -> tuple[Session, Evaluation]:
        return session_of(run, config, settings.driver, settings.store), evaluation_of(run, config, settings.driver)

    driver = Driver(Archive(store, arguments.run, name), settings.driver, make, arguments.parent)
    driver.listen_for_signals()
    failure: ZeldaError | None = None
    try:
        driver.run(arguments.former)
        log.info("driver leaves", reason=driver.pulse.leave or "idle")
    except Unplayable as error:
        failure = error
    except ZeldaError as error:
        log.exception("driver fails")
        failure = error
    store.close()
    stop_ray()
    return 0 if failure is None else _said(failure)


def _said(failure: ZeldaError) -> int:
    """The exit code of a failure, told in the very last line: what a run is told to have failed of is read there."""
    sys.stderr.write(f"driver: {failure}\n")
    return EXIT_CONFIG if isinstance(failure, Unplayable) else EXIT_FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.trainer.rl.driver", description=__doc__)
    parser.add_argument("--run", type=RunId, required=True, help="the run to train")
    parser.add_argument("--name", type=DriverName, help="name of this driver; default a random one")
    parser.add_argument("--former", type=DriverName, help="name of a driver that is known to be dead")
    parser.add_argument("--parent", type=int, help="process id; the driver ends when this is not its parent any more")
    return parser


if __name__ == "__main__":
    leave(main())
