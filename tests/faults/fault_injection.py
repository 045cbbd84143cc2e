"""Fault scenarios for a running ring, at random moments. Each one returns a summary of what it did and measured.

Each counts its faults by the process that they hit. A fault of a server's connections counts for the server.
"""

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from typing import Final

from nats.aio.client import Client

from cli.stack.process import SupervisedProcess
from cli.stack.services import SERVICES
from shared.bus.topology import STREAMS
from tests.faults.injection import KILL_INTERVAL_S, FaultScenario, Injection
from tests.faults.live_system import START_S, LiveSystem
from tests.faults.process_kills import (
    child_kills,
    kill_all_services,
    kill_process,
    random_kills,
    ray_kills,
    supervisor_kills,
)
from tests.faults.small_disk import full
from tests.faults.stepped_clock import CLOCK_FILE, step_clock
from tests.faults.stub_process import memory_mb

PAUSES: Final = 6
PAUSE_S: Final = (3.0, 8.0)  # the lease of the tests lasts four seconds
LEADER_PAUSE_S: Final = (5.0, 8.0)  # longer than that lease
WIPES: Final = 2
PURGES: Final = 6
FAULT_RATE: Final = 0.1
RESETS: Final = 5
OUTAGE_S: Final = {"bus": 300.0, "store": 60.0}
# When an outage begins: after a later one of five minutes, a run may end before its tenth fault. That of the store is
# counted from the first segment, because the driver starts for half a minute, and an epoch is played within seconds.
OUTAGE_FROM_S: Final = {"bus": (2.0, 8.0), "store": (0.0, 2.0)}
HANG_FROM_S: Final = {"bus": (2.0, 15.0), "store": (0.0, 2.0)}
HANG_S: Final = 45.0  # longer than any call may wait for an answer
FULL_S: Final = 40.0  # longer than several writes of each process
CLOCK_STEPS_S: Final = (3_600, -3_600)
STEPPED_S: Final = 10.0
SLOW_S: Final = 40.0
DELAY_S: Final = (0.01, 0.2)  # of each packet
DETECTION_S: Final = 5.0  # services notice an unreachable server within this time


async def bus_outage(round_: Injection) -> str:
    """The bus is unreachable for five minutes."""
    return await _outage(round_, "bus")


async def store_outage(round_: Injection) -> str:
    """The store is unreachable for one minute."""
    return await _outage(round_, "store")


async def pauses(round_: Injection) -> str:
    """SIGSTOP of random processes, one after the other: a stopped leader wakes up behind its successor."""
    for _ in range(PAUSES):
        await asyncio.sleep(round_.rng.uniform(*KILL_INTERVAL_S))
        name = round_.rng.choice((*SERVICES, "rules-judge"))
        await _pause(round_, name, round_.ring.process(name), round_.rng.uniform(*PAUSE_S))
    return f"{PAUSES} pauses"


async def two_leaders(round_: Injection) -> str:
    """SIGSTOP of one of two coordinators for longer than the lease lasts: a leader wakes up beside another leader."""
    first, other = round_.ring.process("coordinator"), round_.ring.second_coordinator()
    await other.start()
    try:
        for _ in range(PAUSES):
            await asyncio.sleep(round_.rng.uniform(*KILL_INTERVAL_S))
            await _pause(round_, "coordinator", round_.rng.choice((first, other)), round_.rng.uniform(*LEADER_PAUSE_S))
    finally:
        await other.stop()
    return f"{PAUSES} pauses of two coordinators"


async def full_disk(round_: Injection) -> str:
    """The disk of store, bus, logs and driver is full for a while."""
    await asyncio.sleep(round_.rng.uniform(5.0, 20.0))
    round_.hit("full disk", "bus", "store", "driver")  # the driver has the work directory
    with full(round_.ring.system.layout.root):
        await asyncio.sleep(FULL_S)
    recovery = await round_.ring.wait_for_progress()
    return f"disk full for {FULL_S:.0f} s, progress after {recovery:.1f} s"


async def clock_steps(round_: Injection) -> str:
    """The clock of all services jumps by an hour, in both directions, and back; those of store and bus do not."""
    clock = round_.ring.system.layout.root / CLOCK_FILE
    for step in round_.rng.sample(CLOCK_STEPS_S, len(CLOCK_STEPS_S)):
        await asyncio.sleep(round_.rng.uniform(3.0, 10.0))
        step_clock(clock, step)
        round_.hit("clock step", *SERVICES)
        await asyncio.sleep(STEPPED_S)
        step_clock(clock, 0)
    return f"clock steps of {', '.join(f'{step:+} s' for step in CLOCK_STEPS_S)}"


async def bus_wiped(round_: Injection) -> str:
    """The bus loses its files, and with them all streams, consumers and events."""
    for _ in range(WIPES):
        await asyncio.sleep(round_.rng.uniform(5.0, 20.0))
        shutil.rmtree(round_.ring.system.layout.bus, ignore_errors=True)
        if kill_process(round_, "bus"):
            round_.hit("wiped files", "bus")
    return f"bus wiped {WIPES} times"


async def purges(round_: Injection) -> str:
    """All streams are purged under load."""
    for _ in range(PURGES):
        await asyncio.sleep(round_.rng.uniform(1.0, 8.0))
        await purge_streams(round_.ring)
        round_.hit("purge", "bus")
    return f"{PURGES} purges"


async def faulty_store(round_: Injection) -> str:
    """The store loses answers and resets connections."""
    store = round_.proxies["store"]
    store.fault_rate = FAULT_RATE
    for _ in range(RESETS):
        await asyncio.sleep(round_.rng.uniform(1.0, 5.0))
        store.reset_connections()
        round_.hit("reset of all connections", "store")
    store.fault_rate = 0.0
    for fault, times in store.faults.items():
        round_.hit(f"answer {fault}", "store", times=times)
    return f"{FAULT_RATE:.0%} faults, {RESETS} resets of all store connections"


async def slow_servers(round_: Injection) -> str:
    """Bus and store answer late, and their connections break."""
    for name, proxy in round_.proxies.items():
        proxy.delay = DELAY_S
        round_.hit("late answers", name)
    for _ in range(RESETS):
        await asyncio.sleep(SLOW_S / RESETS)
        name = round_.rng.choice([*round_.proxies])
        round_.proxies[name].reset_connections()
        round_.hit("reset of all connections", name)
    for proxy in round_.proxies.values():
        proxy.delay = (0.0, 0.0)
    return f"each packet up to {DELAY_S[1]:.1f} s late for {SLOW_S:.0f} s, {RESETS} resets"


async def hanging_bus(round_: Injection) -> str:
    """The bus accepts connections and answers nothing."""
    return await _hang(round_, "bus")


async def hanging_store(round_: Injection) -> str:
    """The store accepts connections and answers nothing."""
    return await _hang(round_, "store")


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
    "ray": ray_kills,
    "restarts": supervisor_kills,
    "pauses": pauses,
    "bus-away": bus_outage,
    "bus-wiped": bus_wiped,
    "purges": purges,
    "store-away": store_outage,
    "store-faults": faulty_store,
    "slow-servers": slow_servers,
    "two-leaders": two_leaders,
    "bus-hangs": hanging_bus,
    "store-hangs": hanging_store,
    "full-disk": full_disk,
    "clock-steps": clock_steps,
}
# Recorders drop and count what exceeds their memory.
DROPS_SEGMENTS: Final = frozenset({"store-away", "store-faults", "store-hangs", "full-disk", "clock-steps"})
PASSES_DEADLINES: Final = frozenset({"clock-steps"})
# These can take as long as a run: kills accompany them instead of following them.
ACCOMPANIED: Final = frozenset({"pauses", "purges", "two-leaders", "bus-hangs", "store-hangs", "full-disk"})


async def _pause(round_: Injection, role: str, paused: SupervisedProcess, seconds: float) -> None:
    """SIGSTOP of a process for some seconds, unless it has ended."""
    process = paused.process
    if process is None or process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGSTOP)
        round_.hit("pause", role)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(process.pid, signal.SIGCONT)


async def _moment(round_: Injection, name: str, within_s: tuple[float, float]) -> None:
    """Wait for a random moment; for a fault of the store, one after the first segment: before it, nothing is played."""
    if name == "store":
        await round_.ring.wait_until(lambda: round_.ring.has_segments(0), START_S)
    await asyncio.sleep(round_.rng.uniform(*within_s))


async def _hang(round_: Injection, name: str) -> str:
    """Let one server hang; report the recovery time."""
    await _moment(round_, name, HANG_FROM_S[name])
    round_.proxies[name].swallow()
    round_.hit("hang", name)
    await asyncio.sleep(HANG_S)
    round_.proxies[name].release()
    recovery = await round_.ring.wait_for_progress()
    return f"{name} hung for {HANG_S:.0f} s, progress after {recovery:.1f} s"


async def _outage(round_: Injection, name: str) -> str:
    """Disconnect one server at a random moment; report the services' memory growth and the recovery time."""
    await _moment(round_, name, OUTAGE_FROM_S[name])
    round_.proxies[name].disconnect()
    round_.hit("outage", name)
    await asyncio.sleep(DETECTION_S)
    before = _service_memory(round_.ring)
    await asyncio.sleep(OUTAGE_S[name] - DETECTION_S)
    growth = max(after - held for after, held in zip(_service_memory(round_.ring), before, strict=True))
    round_.proxies[name].reconnect()
    recovery = await round_.ring.wait_for_progress()
    return f"{name} away {OUTAGE_S[name]:.0f} s, memory grew by at most {growth:.1f} MB, recovered in {recovery:.1f} s"


def _service_memory(ring: LiveSystem) -> list[float]:
    """Resident memory of each running service, in megabytes."""
    return [memory_mb(process) for name in SERVICES if (process := ring.process(name).process) is not None]
