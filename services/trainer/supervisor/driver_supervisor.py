"""Supervises the drivers of all active runs: starts one for an open order, restarts failed ones, then gives up.

The supervisor reads what a run needs from the store on every tick, so a restarted service continues where it stopped.
"""

import os
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog

from services.trainer.documents import STALE_S, DriverName, Heartbeat
from services.trainer.domain.restart_policy import RestartPolicy
from services.trainer.supervisor.backends.port import Backend, DriverLaunch
from shared.contracts.driver import DriverFailed
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.errors import ContractError, Fatal, Permanent, ZeldaError
from shared.process.failpoints import failpoint
from shared.state.epochs import first_unfinished_epoch
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.create import create_if_absent
from shared.store.port import NotFound, Store
from shared.telemetry import metrics
from shared.telemetry.log_once import LogOnce

log = structlog.get_logger(__name__)

STARTS = metrics.counter("trainer_driver_starts_total", "drivers started")
FAILURES = metrics.counter("trainer_driver_failures_total", "drivers that ended with an error")
DRIVERS = metrics.gauge("trainer_drivers", "drivers alive")
SPEED = metrics.gauge("trainer_steps_per_second", "environment steps per second of all drivers together")
ACTIVE = ("created", "running", "stopping")
MAX_DRIVERS: Final = 8
WAITING_S: Final = 10.0  # how often a run that waits for a driver gives a sign of life


@dataclass
class SupervisedRun:
    """One active run and its driver."""

    run: RunId
    restarts: RestartPolicy
    driver: str | None = None
    """Name of the driver that was started or adopted last, while it runs."""
    pending: str | None = None
    """Name of a driver whose start is not confirmed. It may run: the next attempt asks for the same name."""
    former: str | None = None
    """Name of the last driver that is known to have ended."""
    heartbeat: Heartbeat | None = None
    heartbeat_since: float = 0.0
    """When the supervisor first read this heartbeat, on its own clock."""
    fence: int = 0
    registrations: int = 0
    """How often it was registered. A resume may be registered while the supervisor reads that the run has ended."""

    @property
    def holds_driver(self) -> bool:
        """Whether a driver runs, or may run, for it."""
        return self.driver is not None or self.pending is not None


class DriverSupervisor:
    """Keeps one driver at work on every registered run. One task calls `tick` about twice a second."""

    def __init__(
        self, store: Store, backend: Backend, attempts: int, clock: Callable[[], float], max_drivers: int = MAX_DRIVERS
    ) -> None:
        """A run is given up after `attempts` failures in a row; `clock` gives seconds.

        While `max_drivers` run, further runs wait; the one that was registered first gets the next place.
        """
        self.store = store
        self.backend = backend
        self.runs: dict[RunId, SupervisedRun] = {}
        self._attempts = attempts
        self._clock = clock
        self._max_drivers = max_drivers
        self._records = RunRecords(store)
        self._problems = LogOnce[RunId](log.warning, "run supervision failed")
        self._unreadable = LogOnce[RunId](log.warning, "heartbeat unreadable")
        self._waiting = LogOnce[RunId](log.warning, "run waits for a driver")

    async def recover(self) -> None:
        """After a start: register every active run."""
        for record in await self._records.all():
            if record.state in ACTIVE and not record.external:
                self.register(record.run).fence = record.fence

    def register(self, run: RunId) -> SupervisedRun:
        """Supervise this run from now on."""
        if run not in self.runs:
            self.runs[run] = SupervisedRun(run, RestartPolicy(self._attempts))
        self.runs[run].registrations += 1
        return self.runs[run]

    async def tick(self) -> None:
        """Supervise every run once. A failure in one run does not affect the others; Fatal propagates."""
        for run in list(self.runs.values()):
            try:
                await self._supervise(run)
            except Fatal:
                raise
            except ZeldaError as error:
                self._problems.report(run.run, error, run=run.run)
            else:
                self._problems.clear(run.run)
        self._problems.keep_only(self.runs)
        self._unreadable.keep_only(self.runs)
        self._waiting.keep_only(self.runs)
        DRIVERS.set(sum(run.driver is not None for run in self.runs.values()))
        SPEED.set(sum(self._steps_per_second(run) for run in self.runs.values()))

    def _steps_per_second(self, run: SupervisedRun) -> float:
        """Speed of the run's driver while it explores or trains. Stale heartbeats count as 0."""
        beat = run.heartbeat
        if beat is None or beat.driver != run.driver or beat.state not in ("exploring", "training"):
            return 0.0
        return beat.steps_per_s or 0.0 if self._clock() - run.heartbeat_since <= STALE_S else 0.0

    async def _supervise(self, run: SupervisedRun) -> None:
        beat = await self._read_heartbeat(run)
        if beat is not None:
            run.restarts.record_progress(beat.epoch, beat.steps, beat.explored, beat.evaluated)
            if beat != run.heartbeat:
                run.heartbeat, run.heartbeat_since = beat, self._clock()
        if run.driver is None:
            await self._adopt(run, beat)
        if run.driver is not None and await self._driver_runs(run):
            return
        registrations = run.registrations
        try:
            record = await self._records.latest(run.run)
        except NotFound:  # the run was deleted
            del self.runs[run.run]
            return
        if record.state not in ACTIVE:
            if run.registrations == registrations:
                del self.runs[run.run]
        elif record.state == "running" and await self._has_open_order(run.run):
            await self._start(run, record)

    async def _adopt(self, run: SupervisedRun, beat: Heartbeat | None) -> None:
        """Adopt the driver behind the heartbeat if it runs: Ray jobs outlive the service that started them."""
        if beat is None or beat.state == "waiting":
            return
        if (await self.backend.status(beat.driver)).state == "running":
            run.driver, run.pending = beat.driver, None
            log.info("driver adopted", run=run.run, driver=beat.driver)

    async def _driver_runs(self, run: SupervisedRun) -> bool:
        """Whether the run's driver still runs; record how an ended one ended."""
        if run.driver is None:
            return False
        status = await self.backend.status(run.driver)
        if status.state == "running":
            return True
        if status.state == "failed":
            self._record_failure(run, status.reason or "no reason given", status.final)
        run.former, run.driver = run.driver, None
        return False

    def _record_failure(self, run: SupervisedRun, reason: str, final: bool = False) -> None:
        """Count a driver that ended with an error or was refused."""
        FAILURES.inc()
        run.restarts.record_failure(self._clock(), reason, final)
        log.warning("driver failed", run=run.run, driver=run.driver or run.pending, reason=reason)

    async def _start(self, run: SupervisedRun, record: RunRecord) -> None:
        if run.restarts.exhausted:
            await self._give_up(run, record)
        elif run.restarts.may_start(self._clock()):
            await (self._launch(run) if self._has_place(run) else self._write_waiting(run, record))

    async def _launch(self, run: SupervisedRun) -> None:
        run.pending = run.pending or f"{run.run[:24].rstrip('-')}-{uuid.uuid4().hex[:8]}"
        failpoint("trainer.before_driver")
        try:
            await self.backend.start(DriverLaunch(run.run, run.pending, run.former))
        except Permanent as error:
            self._record_failure(run, str(error))
            return
        run.driver, run.pending = run.pending, None
        STARTS.inc()

    def _has_place(self, run: SupervisedRun) -> bool:
        """Whether the run may have a driver now. Each driver takes some 600 MB, so their number is bounded."""
        if run.holds_driver or sum(other.holds_driver for other in self.runs.values()) < self._max_drivers:
            self._waiting.clear(run.run)
            return True
        reason = (
            f"all {self._max_drivers} drivers are taken; raise ZELDA_TRAINER__MAX_DRIVERS if there is room for more"
        )
        self._waiting.report(run.run, reason, run=run.run)
        return False

    async def _write_waiting(self, run: SupervisedRun, record: RunRecord) -> None:
        """Write a heartbeat for a run without a driver. Otherwise the coordinator ends it as silent."""
        now, beat = self._clock(), run.heartbeat
        if beat is not None and beat.state == "waiting" and now - run.heartbeat_since < WAITING_S:
            return
        sign = Heartbeat(
            run=run.run,
            epoch=record.epoch,
            attempt=record.attempt,
            state="waiting",
            time=datetime.now(UTC),
            driver=DriverName("none"),
            host=socket.gethostname(),
            pid=os.getpid(),
        )
        await self.store.put(keys.driver_heartbeat(run.run), sign.to_bytes())

    async def _give_up(self, run: SupervisedRun, record: RunRecord) -> None:
        """Commit the failure of the run's present attempt."""
        failure = DriverFailed(
            run=run.run,
            epoch=record.epoch,
            attempt=record.attempt,
            reason=run.restarts.final_reason[:500],
            time=datetime.now(UTC),
        )
        if not await create_if_absent(self.store, keys.driver_failed(run.run, record.attempt), failure.to_bytes()):
            log.info("run failure already committed", run=run.run)
        del self.runs[run.run]

    async def _has_open_order(self, run: RunId) -> bool:
        """Whether an epoch was ordered and is not finished."""
        names = {entry.key for entry in await self.store.list(keys.epochs_prefix(run))}
        return keys.epoch_start(run, first_unfinished_epoch(run, names)) in names

    async def _read_heartbeat(self, run: SupervisedRun) -> Heartbeat | None:
        """The run's newest heartbeat. A damaged one, or one of a newer version, counts as missing."""
        try:
            beat = Heartbeat.from_bytes(await self.store.get(keys.driver_heartbeat(run.run)))
        except NotFound:
            return None
        except ContractError as error:
            self._unreadable.report(run.run, error, run=run.run)
            return None
        self._unreadable.clear(run.run)
        return beat
