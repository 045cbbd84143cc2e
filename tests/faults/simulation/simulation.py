"""Plays one history against the simulated ring, repairs every fault, and checks how the run ends."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from unittest.mock import patch

import structlog

from services.coordinator.api.models import NewRun
from services.coordinator.api.run_service import RunService
from shared.bus.memory import MemoryBus
from shared.contracts.base import Contract
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.run import RunConfig, RunRecord
from shared.contracts.scores import SegmentScores
from shared.store import keys
from tests.faults.simulation import services
from tests.faults.simulation.clock import Clock
from tests.faults.simulation.commit_checks import RUN, CheckedStore
from tests.faults.simulation.history import SERVICES, SETTLED, Step
from tests.faults.simulation.ports import Servers, SimulatedProcess
from tests.faults.simulation.services import SimulatedService
from tests.faults.simulation.virtual_loop import VirtualLoop

EPOCHS: Final = 2
CONFIG: Final = RunConfig(epochs=EPOCHS, epoch_steps=600, batch_size=64, env_runners=1, judge_deadline_s=86_400)
REQUEST: Final = NewRun(run=RUN, config=CONFIG)
ROUND_S: Final = 61.0  # longer than the reconciler's quiet time and than any lease
MAX_ROUNDS: Final = 60
BUILDERS: Final[dict[str, Callable[[SimulatedProcess, Clock], SimulatedService]]] = {
    "coordinator": services.coordinator,
    "judge": services.judge,
    "rewardmodel": services.reward_model,
}


@dataclass(frozen=True, slots=True)
class EpochResult:
    """What an epoch recorded, by which reward model it was shaped, and which one it produced."""

    segments: tuple[tuple[str, str], ...]
    shaped_by: str | None
    weights: str | None


@dataclass
class Simulation:
    """One ring. `expected` are the results of an undisturbed run, None to compare nothing."""

    expected: list[EpochResult] | None = None

    def __post_init__(self) -> None:
        self.loop = VirtualLoop()
        self.clock = Clock(self.loop)
        self.rng = random.Random(0)
        self.store = CheckedStore(self.clock)
        self.bus = MemoryBus(self.loop.time)
        self.servers = Servers(self.loop, self.store, self.bus, self.rng)
        self.drivers: dict[str, SimulatedProcess] = {}
        self.owners: set[str] = set()
        self.corrupted: set[str] = set()
        self.services = {name: self._start(name) for name in SERVICES}

    def _start(self, name: str) -> SimulatedService:
        process = SimulatedProcess(name, self.servers)
        if name == "trainer":
            return services.trainer(process, self.clock, self.drivers)
        return BUILDERS[name.partition("-")[0]](process, self.clock)

    def play(self, steps: Sequence[Step]) -> list[str]:
        """Play the steps, repair everything, and return each violated guarantee."""
        asyncio.set_event_loop(self.loop)
        try:
            for step in steps:
                self.rng.seed(step.seed)
                self._happen(step.kind, step.argument)
                self.loop.run_cycles(step.cycles)
            self._repair()
            return [*self.store.violations, *self.servers.unexpected, *self._end()]
        finally:
            self._close()

    def _happen(self, kind: str, argument: Any) -> None:
        match kind:
            case "turn":
                for name in SERVICES:
                    self._work(name)
            case "work":
                self._work(argument)
            case "time":
                self.loop.pass_time(argument)
            case "kill":
                self._kill(argument)
            case "freeze":
                self.services[argument].process.freeze()
            case "thaw":
                self.services[argument].process.thaw()
            case "create" | "stop" | "resume" | "delete":
                self._command(kind, argument)
            case _:
                self._break(kind, argument)

    def _break(self, kind: str, argument: Any) -> None:
        """Faults of the servers and of what they hold."""
        match kind:
            case "store away" | "store back":
                self.servers.store_away = kind == "store away"
            case "bus away" | "bus back":
                self.bus.connected = kind == "bus back"
            case "lose answers":
                self.servers.answers_to_lose = int(argument)
            case "purge":
                self.bus.purge()
            case "delete consumer":
                self.bus.delete_consumer(argument)
            case "repeat event":
                self._repeat()
            case "corrupt archive":
                self._corrupt()

    def _work(self, name: str) -> None:
        self.services[name].work(self.rng)

    def _kill(self, name: str) -> None:
        if name == "driver":
            for driver in self.drivers.values():
                driver.kill()
            return
        self.services[name].process.kill()
        self.services[name] = self._start(name)

    def _repeat(self) -> None:
        """An old event comes again, past the deduplication of the bus."""
        if self.servers.published:
            event = self.rng.choice(self.servers.published)
            self.bus.inject(event.to_bytes(), f"zelda.events.{event.runid}.{event.data.NAME}")

    def _corrupt(self) -> None:
        archives = [key for key in self.store.keys_below(keys.segments_prefix(RUN)) if key.endswith(".zip")]
        if archives:
            key = self.rng.choice(archives)
            self.store.corrupt(key)
            self.corrupted.add(key)

    def _command(self, kind: str, key: Any) -> None:
        """A user's request to one of the coordinators; a retry asks either of them."""
        service = self.services[self.rng.choice(("coordinator-a", "coordinator-b"))]
        assert service.commands is not None
        service.process.start(services.tolerate(self._request(service.commands, kind, key)))

    async def _request(self, commands: RunService, kind: str, key: str) -> None:
        match kind:
            case "create":
                record, _ = await commands.create(REQUEST, key)
                assert record.run == RUN
                self.owners.add(key)
            case "stop":
                await commands.stop(RUN)
            case "resume":
                await commands.resume(RUN)
            case "delete":
                await commands.delete(RUN)

    def _repair(self) -> None:
        """End every fault, then let time pass until the run has ended."""
        self.servers.store_away, self.servers.answers_to_lose, self.bus.connected = False, 0, True
        for service in self.services.values():
            service.process.thaw()
        self.loop.run_cycles(SETTLED)
        self._kill("coordinator-b")
        for _ in range(MAX_ROUNDS):
            self.loop.pass_time(ROUND_S)
            for name in SERVICES:
                if name != "coordinator-b":
                    self._work(name)
            self.loop.run_cycles()
            if self._has_ended():
                return

    def _has_ended(self) -> bool:
        """Whether nothing more will happen; a stopped or failed run is resumed."""
        record = self.record()
        if self._is_marked_deleted():
            self._command("delete", "")
            self.loop.run_cycles()
            return True
        if record is None:
            self._command("create", "key-1")
        elif record.state in ("stopped", "failed"):
            self._command("resume", "")
        return record is not None and record.state == "finished"

    def _is_marked_deleted(self) -> bool:
        return self.store.content(keys.deleted_run(RUN)) is not None

    def record(self) -> RunRecord | None:
        """The newest revision of the run's record."""
        revisions = self.store.keys_below(keys.run_record_prefix(RUN))
        return RunRecord.from_bytes(self.store.content(revisions[-1]) or b"") if revisions else None

    def _end(self) -> list[str]:
        """What is wrong with the end of the history."""
        found = [f"{len(self.owners)} requests own the run: {sorted(self.owners)}"] if len(self.owners) > 1 else []
        if self._is_marked_deleted():
            left = [key for prefix in keys.prefixes_of_run(RUN).values() for key in self.store.keys_below(prefix)]
            return found + ([f"after the deletion {len(left)} objects are left: {left[:3]}"] if left else [])
        record = self.record()
        if record is None or record.state != "finished":
            state = "does not exist" if record is None else f"is {record.state}"
            return [*found, f"the run {state} {MAX_ROUNDS} rounds after the last fault"]
        return found + self._results_differ()

    def _results_differ(self) -> list[str]:
        results = self.results()
        if len(results) != EPOCHS:
            return [f"the run finished with {len(results)} epochs of {EPOCHS}"]
        unjudged = [
            name for epoch in range(EPOCHS) for name in self._listed(epoch) if self._status(epoch, name) != "judged"
        ]
        if self.corrupted:
            return []
        if unjudged:
            return [f"segments without scores: {unjudged}"]
        if self.expected is not None and results != self.expected:
            return ["segments or reward models differ from an undisturbed run"]
        return []

    def _listed(self, epoch: int) -> list[str]:
        raw = self.store.content(keys.epoch_finished(RUN, epoch)) or b""
        return [one.segment for one in EpochFinishedRecord.from_bytes(raw).segments]

    def _status(self, epoch: int, name: str) -> str | None:
        raw = self.store.content(f"{keys.scores_prefix(RUN, epoch)}{name}.json")
        return SegmentScores.from_bytes(raw).status if raw is not None else None

    def results(self) -> list[EpochResult]:
        """The results of all finished epochs."""
        results: list[EpochResult] = []
        while (raw := self.store.content(keys.epoch_finished(RUN, len(results)))) is not None:
            epoch = len(results)
            start = EpochStart.from_bytes(self.store.content(keys.epoch_start(RUN, epoch)) or b"")
            card = self.store.content(keys.reward_model_card(RUN, epoch))
            listed = EpochFinishedRecord.from_bytes(raw).segments
            results.append(
                EpochResult(
                    segments=tuple(sorted((one.segment, one.digest) for one in listed)),
                    shaped_by=start.reward_model.weights_digest if start.reward_model else None,
                    weights=RewardModelCard.from_bytes(card).weights_digest if card is not None else None,
                )
            )
        return results

    def _close(self) -> None:
        """Cancel all tasks, and run until they have ended."""
        for process in [*(one.process for one in self.services.values()), *self.drivers.values()]:
            process.kill()
        self.loop.run_cycles(SETTLED)
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_cycles(SETTLED)
        asyncio.set_event_loop(None)
        self.loop.close()


@lru_cache(maxsize=1)
def undisturbed() -> list[EpochResult]:
    """The results of a run without faults."""
    simulation = Simulation()
    violations = simulation.play([])
    assert violations == [], violations
    return simulation.results()


def violations_of(steps: Sequence[Step]) -> list[str]:
    """Every guarantee that this history violates."""
    return Simulation(undisturbed()).play(steps)


@contextmanager
def fast_parsing() -> Iterator[None]:
    """Parse equal bytes once while the body runs: documents are frozen, and every service parses the same ones."""
    cached: Any = lru_cache(maxsize=20_000)(Contract.__dict__["from_bytes"].__func__)
    with patch.object(Contract, "from_bytes", classmethod(cached)):
        yield


def silence_logs() -> None:
    """Faults are what these histories are made of: log lines about them would take most of the time."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory(), processors=[_drop])


def _drop(_logger: Any, _method: str, _event: Any) -> Any:
    raise structlog.DropEvent
