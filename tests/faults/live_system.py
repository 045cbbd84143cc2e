"""A complete system of real processes for a test: bus server, S3 server, rules judge, five services, and one run."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from cli.client import CoordinatorClient, open_client
from cli.errors import UNREACHABLE, CliError
from cli.stack.connections import local_store
from cli.stack.local_stack import STARTS, LocalStack, StackOptions, build_stack
from cli.stack.ports import PortAllocator
from cli.stack.process import PortTaken, SupervisedProcess
from cli.stack.services import SERVICES, service_spec
from shared.contracts.events import ENDED_STATES
from shared.contracts.ids import RunId
from shared.errors import Transient
from shared.store import keys
from shared.store.port import Store
from tests.faults.fault_proxy import FaultProxy
from tests.faults.run_audit import RunAudit, audit_run
from tests.servers import when_back

RUN = RunId("ring")
INTERVAL_S: Final = 0.05
"""Between two looks at a condition: a kill must hit the moment that it is aimed at."""
PROGRESS_INTERVAL_S: Final = 1.0
"""Between two looks at how far the run is, which lists many objects: looks must not take the run's processor time."""
START_S: Final = 240.0
"""Until a driver with its Ray has recorded a segment, on a busy machine."""
PATIENCE_S: Final = 120.0
"""How long an unreachable coordinator is asked again: without its store, which is away for a minute, it answers 503."""
# A small but complete ring: the driver samples in its own process, and each epoch takes seconds. Steps have 12
# frames, so that the hero gets somewhere: otherwise scores hardly differ, and no reward model passes its gates.
CONFIG: dict[str, Any] = {
    "world": "garden",
    "epochs": 3,
    "epoch_steps": 1_200,
    "episode_length": 300,
    "segment_steps": 100,
    "frame_skip": 12,
    "batch_size": 300,
    "env_runners": 0,
    "envs_per_runner": 4,
    "eval_interval": 0,
    "seed": 11,
}
# The coordinator reacts within seconds instead of half a minute.
FAST_COORDINATOR = {
    "coordinator": {
        "ZELDA_COORDINATOR__INTERVAL_S": "0.5",
        "ZELDA_COORDINATOR__QUIET_S": "5",
        "ZELDA_COORDINATOR__LEASE_S": "4",
    }
}
# With a few segments the real thresholds fail by chance, and then no fault test would ever play with shaped rewards.
# Because these gates let every model pass, a longer training would check nothing more.
PASSABLE_GATES = {
    "rewardmodel": {
        "ZELDA_REWARDMODEL__STEPS": "40",
        "ZELDA_REWARDMODEL__SHUFFLES": "1",
        "ZELDA_REWARDMODEL__GATES__ACCURACY_CONFIDENT": "0",
        "ZELDA_REWARDMODEL__GATES__ACCURACY_ALL": "0",
        "ZELDA_REWARDMODEL__GATES__OVER_STEP_INDEX": "-1",
        "ZELDA_REWARDMODEL__GATES__OVER_LINEAR": "-1",
        "ZELDA_REWARDMODEL__GATES__SHUFFLED_LOW": "0",
        "ZELDA_REWARDMODEL__GATES__SHUFFLED_HIGH": "1",
        "ZELDA_REWARDMODEL__GATES__ECE": "1",
        "ZELDA_REWARDMODEL__GATES__PAIRS": "1",
        "ZELDA_REWARDMODEL__GATES__EPISODES": "2",
        "ZELDA_REWARDMODEL__GATES__SPREAD": "0",
    }
}
NO_EXPORTS = {"exporter": {"ZELDA_EXPORT__POLICY": "none"}}
SETTINGS_OF_TESTS = FAST_COORDINATOR | PASSABLE_GATES | NO_EXPORTS


@dataclass(slots=True)
class LiveSystem:
    """One running system and one run. `messages` are the supervisor's messages: crashes and restarts.

    `build` describes the system's processes on new ports. `clients` closes each client that was opened.
    """

    build: Callable[[], LocalStack]
    clients: ExitStack
    messages: list[str] = field(default_factory=list)
    epochs: int = 0
    allocator: PortAllocator = field(default_factory=PortAllocator)
    system: LocalStack = field(init=False)
    store: Store = field(init=False)
    client: CoordinatorClient = field(init=False)
    restarting: bool = False

    async def start(self) -> None:
        """Start the system, as `zelda up` does."""
        for attempt in range(STARTS, 0, -1):
            self.system = self.build()
            try:
                await self.system.start()
                break
            except PortTaken:  # systems of other tests start at the same time
                await self.system.stop()
                if attempt == 1:
                    raise
        self.store = local_store(self.system.settings)
        self.client = self.clients.enter_context(open_client(self.system.connection))
        self.system.supervisor = asyncio.create_task(self.system.supervise())

    async def lose_supervisor(self) -> None:
        """What `kill -9` of `zelda up` does, and `zelda up` again: all processes get SIGTERM at once, servers too."""
        self.restarting = True
        self.system.supervisor.cancel()
        await asyncio.gather(*(one.stop() for one in (*self.system.servers, *self.system.services)))
        await self.start()
        self.restarting = False

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        """Call the coordinator's REST interface; retry for PATIENCE_S while it is unreachable."""
        return await asyncio.to_thread(self._request, method, path, body)

    def _request(self, method: str, path: str, body: Any) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.client.get(path) if method == "GET" else self.client.post(path, body)
            except CliError as problem:
                if problem.code != UNREACHABLE or time.monotonic() > deadline:
                    raise
            time.sleep(0.3)

    async def start_run(self, **config: Any) -> None:
        """Start the run; `config` overrides parts of CONFIG."""
        whole = CONFIG | config
        self.epochs = whole["epochs"]
        await self.request("POST", "/runs", {"run": RUN, "config": whole})

    async def run_state(self) -> str:
        """Current state of the run."""
        return str((await self.request("GET", f"/runs/{RUN}"))["record"]["state"])

    async def wait_for_end(self, seconds: float = 240, interval_s: float = PROGRESS_INTERVAL_S) -> str:
        """Wait up to `seconds` until the run ends; return its final state."""
        await self.wait_until(lambda: self._has_ended(), seconds, interval_s)
        return await self.run_state()

    async def _has_ended(self) -> bool:
        return await self.run_state() in ENDED_STATES

    async def wait_until(
        self, condition: Callable[[], Awaitable[bool]], seconds: float = 120, interval_s: float = INTERVAL_S
    ) -> None:
        """Wait until the condition holds; on timeout, fail with the last log line of each process."""
        deadline = time.monotonic() + seconds
        while not await condition():
            if time.monotonic() > deadline or (not self.restarting and self.system.supervisor.done()):
                last = {one.spec.name: one.last_line(4_000) for one in self.system.services}
                raise AssertionError(f"not within {seconds} s; {last}; {self.messages}")
            await asyncio.sleep(interval_s)

    async def has_segments(self, epoch: int) -> bool:
        """Whether the epoch has recorded a segment."""
        return bool(await self.store.list(keys.segments_prefix(RUN, epoch)))

    async def segment_count(self) -> int:
        """Number of recorded segments."""
        return len(await self.store.list(keys.segments_prefix(RUN)))

    async def has_scores(self, epoch: int) -> bool:
        """Whether the epoch has a first outcome."""
        return bool(await self.store.list(keys.scores_prefix(RUN, epoch)))

    async def has_finished(self, epoch: int) -> bool:
        """Whether the epoch is played, so that its reward model is due."""
        return await self.store.exists(keys.epoch_finished(RUN, epoch))

    async def object_count(self) -> int:
        """Number of the run's objects in the store: a measure of progress."""
        scores = (keys.scores_prefix(RUN, epoch) for epoch in range(self.epochs))
        prefixes = (keys.segments_prefix(RUN), keys.run_prefix(RUN), *scores)
        return sum([len(await self.store.list(prefix)) for prefix in prefixes])

    async def wait_for_progress(self, seconds: float = 120) -> float:
        """Wait until the run has more objects than now; return the seconds that it took."""
        began = time.monotonic()
        objects = await when_back(self.object_count, seconds)
        await self.wait_until(lambda: self._has_more(objects), seconds, PROGRESS_INTERVAL_S)
        return time.monotonic() - began

    async def wait_for_segments(self, seconds: float) -> None:
        """Wait until the run has recorded another segment."""
        await self._wait_for_more(self.segment_count, 1, seconds)

    async def wait_for_epochs(self, epochs: int, seconds: float) -> None:
        """Wait until the run has played so many more epochs: to play a second one, it needs every service."""
        await self._wait_for_more(self.played_epochs, epochs, seconds)

    async def _wait_for_more(self, count: Callable[[], Awaitable[int]], more: int, seconds: float) -> None:
        enough = await count() + more

        async def counted() -> bool:
            return await count() >= enough

        await self.wait_until(counted, seconds, PROGRESS_INTERVAL_S)

    async def played_epochs(self) -> int:
        """Number of played epochs."""
        entries = await self.store.list(keys.epochs_prefix(RUN))
        return sum(entry.key.endswith("/finished.json") for entry in entries)

    async def _has_more(self, objects: int) -> bool:
        try:
            return await self.object_count() > objects
        except Transient:  # the store is restarting
            return False

    def kill(self, name: str) -> None:
        """`kill -9` of one process; the supervisor restarts it."""
        process = self.process(name).process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)

    def second_coordinator(self) -> SupervisedProcess:
        """Another coordinator on the same bus and store, with its own port, not started."""
        ports = replace(self.system.ports, api=self.allocator.allocate())
        settings = {**self.system.settings, **FAST_COORDINATOR["coordinator"]}
        spec = service_spec("coordinator", self.system.layout, ports, settings)
        return SupervisedProcess(spec, self.system.layout.logs / "second-coordinator.log", self.messages.append)

    def process(self, name: str) -> SupervisedProcess:
        """One process by name."""
        return self.system.process(name)

    async def audit(self) -> RunAudit:
        """Audit of the run."""
        return await audit_run(self.store, RUN)


@asynccontextmanager
async def live_system(
    root: Path,
    store_proxy: FaultProxy | None = None,
    bus_proxy: FaultProxy | None = None,
    allocator: PortAllocator | None = None,
    **extra: dict[str, str],
) -> AsyncIterator[LiveSystem]:
    """Run a system for the duration of the body, with its store and bus behind the given proxies.

    `extra` maps a service to further environment variables.
    """
    messages: list[str] = []
    allocator = allocator or PortAllocator()
    proxied = {"ZELDA_STORE__ENDPOINT": f"http://127.0.0.1:{store_proxy.port}"} if store_proxy else {}
    if bus_proxy:
        proxied["ZELDA_BUS__URL"] = f"nats://127.0.0.1:{bus_proxy.port}"
    settings = {name: proxied | SETTINGS_OF_TESTS.get(name, {}) | extra.get(name, {}) for name in SERVICES}

    def build() -> LocalStack:
        system = build_stack(StackOptions(root=root, extra=settings), messages.append, allocator)
        if store_proxy:
            store_proxy.target_port = system.ports.store or 0
        if bus_proxy:
            bus_proxy.target_port = system.ports.bus
        return system

    with ExitStack() as clients:
        ring = LiveSystem(build, clients, messages, allocator=allocator)
        try:
            await ring.start()
            yield ring
        finally:
            await ring.system.stop()
