"""Fault scenarios for a running ring, at random moments. Each one returns a summary of what it did and measured."""

import asyncio
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from nats.aio.client import Client

from cli.stack.port_owner import family
from cli.stack.process import SupervisedProcess
from cli.stack.services import SERVICES
from shared.bus.topology import STREAMS
from tests.faults.fault_proxy import FaultProxy
from tests.faults.live_system import LiveSystem
from tests.faults.small_disk import full
from tests.faults.stepped_clock import CLOCK_FILE, step_clock
from tests.faults.stub_process import memory_mb

KILLS: Final = 15
KILL_INTERVAL_S: Final = (0.5, 4.0)
KILL_ALL_ROUNDS: Final = 3
CHILD_KILLS: Final = 6
CHILD_WAIT_S: Final = 10.0
CHILDREN: Final = {
    "driver": ("trainer", "services.trainer.driver"),
    "training": ("rewardmodel", "services.rewardmodel.training.worker"),
}
PAUSES: Final = 6
PAUSE_S: Final = (3.0, 12.0)  # the lease of the tests lasts four seconds
LEADER_PAUSE_S: Final = (5.0, 12.0)  # longer than that lease
WIPES: Final = 2
PURGES: Final = 6
FAULT_RATE: Final = 0.1
RESETS: Final = 5
OUTAGE_S: Final = {"bus": 300.0, "store": 60.0}
HANG_S: Final = 45.0  # longer than any call may wait for an answer
FULL_S: Final = 40.0  # longer than several writes of each process
CLOCK_STEPS_S: Final = (3_600, -3_600)
STEPPED_S: Final = 20.0
DETECTION_S: Final = 5.0  # services notice an unreachable server within this time

Proxies = dict[str, FaultProxy]
FaultScenario = Callable[[LiveSystem, Proxies, random.Random], Coroutine[Any, Any, str]]


async def no_faults(_ring: LiveSystem, _proxies: Proxies, _rng: random.Random) -> str:
    """The baseline: an undisturbed run."""
    return "no faults"


async def random_kills(ring: LiveSystem, _proxies: Proxies, rng: random.Random) -> str:
    """`kill -9` of one random process at a time: services, bus and rules judge."""
    for _ in range(KILLS):
        await asyncio.sleep(rng.uniform(*KILL_INTERVAL_S))
        _kill(ring, rng.choice((*SERVICES, "bus", "rules-judge")))
    return f"{KILLS} kills"


async def kill_all_services(ring: LiveSystem, _proxies: Proxies, rng: random.Random) -> str:
    """`kill -9` of all five services together, several times."""
    for _ in range(KILL_ALL_ROUNDS):
        await asyncio.sleep(rng.uniform(1.0, 10.0))
        for name in SERVICES:
            _kill(ring, name)
    return f"all killed {KILL_ALL_ROUNDS} times"


async def bus_outage(ring: LiveSystem, proxies: Proxies, rng: random.Random) -> str:
    """The bus is unreachable for five minutes."""
    return await _outage(ring, proxies, rng, "bus")


async def store_outage(ring: LiveSystem, proxies: Proxies, rng: random.Random) -> str:
    """The store is unreachable for one minute."""
    return await _outage(ring, proxies, rng, "store")


async def child_kills(ring: LiveSystem, _proxies: Proxies, rng: random.Random) -> str:
    """`kill -9` of the children by role: the driver with its segment writer, and the training of a reward model."""
    killed = Counter[str]()
    while sum(killed.values()) < CHILD_KILLS:
        role = rng.choice([*CHILDREN])
        service, module = CHILDREN[role]
        await asyncio.sleep(rng.uniform(*KILL_INTERVAL_S))
        if pid := await _child(ring, service, module):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed[role] += 1
    return ", ".join(f"{role} killed {times} times" for role, times in sorted(killed.items()))


async def pauses(ring: LiveSystem, _proxies: Proxies, rng: random.Random) -> str:
    """SIGSTOP of random processes, one after the other: a stopped leader wakes up behind its successor."""
    for _ in range(PAUSES):
        await asyncio.sleep(rng.uniform(*KILL_INTERVAL_S))
        await _pause(ring.process(rng.choice((*SERVICES, "rules-judge"))), rng.uniform(*PAUSE_S))
    return f"{PAUSES} pauses"


async def two_leaders(ring: LiveSystem, _proxies: Proxies, rng: random.Random) -> str:
    """SIGSTOP of one of two coordinators for longer than the lease lasts: a leader wakes up beside another leader."""
    other = ring.second_coordinator()
    await other.start()
    try:
        for _ in range(PAUSES):
            await asyncio.sleep(rng.uniform(*KILL_INTERVAL_S))
            await _pause(rng.choice((ring.process("coordinator"), other)), rng.uniform(*LEADER_PAUSE_S))
    finally:
        await other.stop()
    return f"{PAUSES} pauses of two coordinators"


async def full_disk(ring: LiveSystem, _proxies: Proxies, rng: random.Random) -> str:
    """The disk of store, bus, logs and driver is full for a while."""
    await asyncio.sleep(rng.uniform(5.0, 20.0))
    with full(ring.system.layout.root):
        await asyncio.sleep(FULL_S)
    recovery = await ring.wait_for_progress()
    return f"disk full for {FULL_S:.0f} s, progress after {recovery:.1f} s"


async def clock_steps(ring: LiveSystem, _proxies: Proxies, rng: random.Random) -> str:
    """The clock of all services jumps by an hour, in both directions, and back; those of store and bus do not."""
    clock = ring.system.layout.root / CLOCK_FILE
    for step in rng.sample(CLOCK_STEPS_S, len(CLOCK_STEPS_S)):
        await asyncio.sleep(rng.uniform(3.0, 10.0))
        step_clock(clock, step)
        await asyncio.sleep(STEPPED_S)
        step_clock(clock, 0)
    return f"clock steps of {', '.join(f'{step:+} s' for step in CLOCK_STEPS_S)}"


async def bus_wiped(ring: LiveSystem, _proxies: Proxies, rng: random.Random) -> str:
    """The bus loses its files, and with them all streams, consumers and events."""
    for _ in range(WIPES):
        await asyncio.sleep(rng.uniform(5.0, 20.0))
        shutil.rmtree(ring.system.layout.bus, ignore_errors=True)
        _kill(ring, "bus")
    return f"bus wiped {WIPES} times"


async def purges(ring: LiveSystem, _proxies: Proxies, rng: random.Random) -> str:
    """All streams are purged under load."""
    for _ in range(PURGES):
        await asyncio.sleep(rng.uniform(1.0, 8.0))
        await purge_streams(ring)
    return f"{PURGES} purges"


async def faulty_store(ring: LiveSystem, proxies: Proxies, rng: random.Random) -> str:
    """The store loses answers and resets connections."""
    proxies["store"].fault_rate = FAULT_RATE
    for _ in range(RESETS):
        await asyncio.sleep(rng.uniform(1.0, 5.0))
        proxies["store"].reset_connections()
    proxies["store"].fault_rate = 0.0
    return f"{FAULT_RATE:.0%} faults, {RESETS} resets of all store connections"


async def hanging_bus(ring: LiveSystem, proxies: Proxies, rng: random.Random) -> str:
    """The bus accepts connections and answers nothing."""
    return await _hang(ring, proxies, rng, "bus")


async def hanging_store(ring: LiveSystem, proxies: Proxies, rng: random.Random) -> str:
    """The store accepts connections and answers nothing."""
    return await _hang(ring, proxies, rng, "store")


async def purge_streams(ring: LiveSystem) -> None:
    """Purge every stream, as an operator could."""
    client = Client()
    password = ring.system.layout.secret("bus-password").read_text(encoding="utf-8")
    await client.connect(ring.system.settings["ZELDA_BUS__URL"], user="zelda", password=password)
    try:
        for stream in STREAMS:
            await client.jetstream().purge_stream(stream.name)
    finally:
        await client.close()


SCENARIOS: Final[dict[str, FaultScenario]] = {
    "kills": random_kills,
    "together": kill_all_services,
    "children": child_kills,
    "pauses": pauses,
    "bus-away": bus_outage,
    "bus-wiped": bus_wiped,
    "purges": purges,
    "store-away": store_outage,
    "store-faults": faulty_store,
    "two-leaders": two_leaders,
    "bus-hangs": hanging_bus,
    "store-hangs": hanging_store,
    "full-disk": full_disk,
    "clock-steps": clock_steps,
}
# Recorders drop and count what exceeds their memory.
DROPS_SEGMENTS: Final = frozenset({"store-away", "store-faults", "store-hangs", "full-disk", "clock-steps"})


async def _child(ring: LiveSystem, service: str, module: str) -> int | None:
    """A child of the service that runs this module, if there is one within a few seconds."""
    deadline = time.monotonic() + CHILD_WAIT_S
    while time.monotonic() < deadline:
        process = ring.process(service).process
        for pid in family(process.pid) if process is not None else ():
            if _runs_module(pid, module):
                return pid
        await asyncio.sleep(0.05)
    return None


def _runs_module(pid: int, module: str) -> bool:
    try:
        return module in Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:  # it has ended
        return False


async def _pause(paused: SupervisedProcess, seconds: float) -> None:
    """SIGSTOP of a process for some seconds, unless it has ended."""
    process = paused.process
    if process is None or process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(process.pid, signal.SIGCONT)


async def _hang(ring: LiveSystem, proxies: Proxies, rng: random.Random, name: str) -> str:
    """Let one server hang; report the recovery time."""
    await asyncio.sleep(rng.uniform(2.0, 15.0))
    proxies[name].swallow()
    await asyncio.sleep(HANG_S)
    proxies[name].release()
    recovery = await ring.wait_for_progress()
    return f"{name} hung for {HANG_S:.0f} s, progress after {recovery:.1f} s"


def _kill(ring: LiveSystem, name: str) -> None:
    """`kill -9`, unless the process has exited already."""
    if ring.process(name).exit_code is None:
        with suppress(ProcessLookupError):
            ring.kill(name)


async def _outage(ring: LiveSystem, proxies: Proxies, rng: random.Random, name: str) -> str:
    """Disconnect one server at a random moment; report the services' memory growth and the recovery time."""
    await asyncio.sleep(rng.uniform(2.0, 15.0))
    proxies[name].disconnect()
    await asyncio.sleep(DETECTION_S)
    before = _service_memory(ring)
    await asyncio.sleep(OUTAGE_S[name] - DETECTION_S)
    growth = max(after - held for after, held in zip(_service_memory(ring), before, strict=True))
    proxies[name].reconnect()
    recovery = await ring.wait_for_progress()
    return f"{name} away {OUTAGE_S[name]:.0f} s, memory grew by at most {growth:.1f} MB, recovered in {recovery:.1f} s"


def _service_memory(ring: LiveSystem) -> list[float]:
    """Resident memory of each running service, in megabytes."""
    return [memory_mb(process) for name in SERVICES if (process := ring.process(name).process) is not None]
