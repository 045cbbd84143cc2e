"""The drivers of all active runs: started when there is work, started again when they fail, given up in the end.

The service decides nothing about training. What a run needs is read from the store each time, so that a restarted
service knows as much as the one before.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from services.trainer.documents import STALE_S, Heartbeat
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
from shared.store.port import AlreadyExists, NotFound, Store
from shared.telemetry import metrics

log = structlog.get_logger(__name__)

STARTS = metrics.counter("trainer_driver_starts_total", "drivers started")
FAILURES = metrics.counter("trainer_driver_failures_total", "drivers that ended with an error")
DRIVERS = metrics.gauge("trainer_drivers", "drivers alive")
SPEED = metrics.gauge("trainer_steps_per_second", "environment steps per second of all drivers together")
ACTIVE = ("created", "running", "stopping")


@dataclass
class SupervisedRun:
    """One active run. `driver` is the name of the driver started last, if any; `trouble` what kept us from the run.

    `starting` is the name of a driver whose start was not confirmed: it may run, and is asked for again by this name.
    `heard` is the newest heartbeat, and when it was read first.
    """

    run: RunId
    supervision: RestartPolicy
    driver: str | None = None
    starting: str | None = None
    former: str | None = None
    heard: tuple[Heartbeat, float] | None = None
    fence: int = field(default=0)
    trouble: str | None = None
    odd_heartbeat: str | None = None


class DriverSupervisor:
    """One member per active run. `tick` is called about once a second by one task; it is not re-entrant."""

    def __init__(self, store: Store, backend: Backend, attempts: int, clock: Callable[[], float]) -> None:
        self.store = store
        self.backend = backend
        self.members: dict[RunId, SupervisedRun] = {}
        self._attempts = attempts
        self._clock = clock
        self._runs = RunRecords(store)

    async def recover(self) -> None:
        """After a start: take up every active run."""
        for record in await self._runs.all():
            if record.state in ACTIVE:
                self.take_up(record.run)

    def take_up(self, run: RunId) -> SupervisedRun:
        """Watch over this run from now on."""
        if run not in self.members:
            self.members[run] = SupervisedRun(run, RestartPolicy(self._attempts))
        return self.members[run]

    async def tick(self) -> None:
        """Look after every member once. What is wrong with one run keeps nobody from the others; Fatal goes up."""
        for member in list(self.members.values()):
            try:
                await self._look_after(member)
            except Fatal:
                raise
            except ZeldaError as error:
                _note(member, str(error))
            else:
                member.trouble = None
        DRIVERS.set(sum(member.driver is not None for member in self.members.values()))
        SPEED.set(sum(self._speed(member) for member in self.members.values()))

    def _speed(self, member: SupervisedRun) -> float:
        """Steps per second of the member's driver, if it lives and trains. What a dead one said last is no speed."""
        if member.heard is None:
            return 0.0
        beat, since = member.heard
        trains = beat.driver == member.driver and beat.state == "training" and self._clock() - since <= STALE_S
        return beat.steps_per_s or 0.0 if trains else 0.0

    async def _look_after(self, member: SupervisedRun) -> None:
        beat = await self._heartbeat(member)
        if beat is not None:
            member.supervision.seen(beat.epoch, beat.steps)
            if member.heard is None or beat != member.heard[0]:
                member.heard = beat, self._clock()
        if member.driver is None:
            await self._adopt(member, beat)
        if member.driver is not None and await self._lives(member):
            return
        try:
            record = await self._runs.latest(member.run)
        except NotFound:  # somebody deleted the run
            del self.members[member.run]
            return
        if record.state not in ACTIVE:
            del self.members[member.run]
        elif record.state == "running" and await self._has_work(member.run):
            await self._start(member, record)

    async def _adopt(self, member: SupervisedRun, beat: Heartbeat | None) -> None:
        """A driver that an earlier life of this service started may still run, where the backend lets it."""
        if beat is not None and (await self.backend.outcome(beat.driver)).life == "running":
            member.driver, member.starting = beat.driver, None
            log.info("driver adopted", run=member.run, driver=beat.driver)

    async def _lives(self, member: SupervisedRun) -> bool:
        """Whether the member's driver runs; if not, note how it ended."""
        if member.driver is None:
            return False
        outcome = await self.backend.outcome(member.driver)
        if outcome.life == "running":
            return True
        if outcome.life == "failed":
            self._failed(member, outcome.reason or "no reason given", outcome.final)
        member.former, member.driver = member.driver, None
        return False

    def _failed(self, member: SupervisedRun, reason: str, final: bool = False) -> None:
        """A driver ended with an error, or was refused before it began."""
        FAILURES.inc()
        member.supervision.failed(self._clock(), reason, final)
        log.warning("driver failed", run=member.run, driver=member.driver or member.starting, reason=reason)

    async def _start(self, member: SupervisedRun, record: RunRecord) -> None:
        if member.supervision.hopeless:
            await self._give_up(member, record)
        elif member.supervision.may_start(self._clock()):
            member.starting = member.starting or f"{member.run[:24].rstrip('-')}-{uuid.uuid4().hex[:8]}"
            failpoint("trainer.before_driver")
            try:
                await self.backend.start(DriverLaunch(member.run, member.starting, member.former))
            except Permanent as error:
                self._failed(member, str(error))
                return
            member.driver, member.starting = member.starting, None
            STARTS.inc()

    async def _give_up(self, member: SupervisedRun, record: RunRecord) -> None:
        word = DriverFailed(
            run=member.run,
            epoch=record.epoch,
            attempt=record.attempt,
            reason=member.supervision.verdict[:500],
            time=datetime.now(UTC),
        )
        try:
            await self.store.create(keys.driver_failed(member.run, record.attempt), word.to_bytes())
        except AlreadyExists:
            log.info("the run was given up before", run=member.run)
        del self.members[member.run]

    async def _has_work(self, run: RunId) -> bool:
        """Whether an epoch was ordered and not finished."""
        names = {entry.key for entry in await self.store.list(keys.epochs_prefix(run))}
        return keys.epoch_start(run, first_unfinished_epoch(run, names)) in names

    async def _heartbeat(self, member: SupervisedRun) -> Heartbeat | None:
        """None also where it cannot be read (damaged, or of a newer version): the next driver writes another."""
        try:
            beat = Heartbeat.from_bytes(await self.store.get(keys.driver_heartbeat(member.run)))
        except NotFound:
            return None
        except ContractError as error:
            if member.odd_heartbeat != str(error):
                log.warning("heartbeat cannot be read", run=member.run, error=str(error))
            member.odd_heartbeat = str(error)
            return None
        member.odd_heartbeat = None
        return beat


def _note(member: SupervisedRun, trouble: str) -> None:
    """Log what is wrong with a run, once: the next tick meets it again in half a second."""
    if member.trouble != trouble:
        log.warning("run not looked after", run=member.run, error=trouble)
    member.trouble = trouble
