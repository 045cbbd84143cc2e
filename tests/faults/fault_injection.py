"""Fault scenarios for a running ring, at random moments. Each one returns a summary of what it did and measured."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from cli.stack.services import SERVICES
from shared.store import keys
from tests.faults.fault_proxy import FaultProxy
from tests.faults.live_system import RUN, LiveSystem
from tests.faults.stub_process import memory_mb

KILLS: Final = 15
KILL_INTERVAL_S: Final = (0.5, 4.0)
KILL_ALL_ROUNDS: Final = 3
OUTAGE_S: Final = {"bus": 300.0, "store": 60.0}
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


SCENARIOS: Final[dict[str, FaultScenario]] = {
    "kills": random_kills,
    "together": kill_all_services,
    "bus-away": bus_outage,
    "store-away": store_outage,
}
DROPS_SEGMENTS: Final = frozenset({"store-away"})  # recorders drop and count what exceeds their memory


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
    objects = await _object_count(ring)
    proxies[name].reconnect()
    reconnected = time.monotonic()
    await ring.wait_until(lambda: _has_progressed(ring, objects))
    recovery = time.monotonic() - reconnected
    return f"{name} away {OUTAGE_S[name]:.0f} s, memory grew by at most {growth:.1f} MB, recovered in {recovery:.1f} s"


def _service_memory(ring: LiveSystem) -> list[float]:
    """Resident memory of each running service, in megabytes."""
    return [memory_mb(process) for name in SERVICES if (process := ring.process(name).process) is not None]


async def _object_count(ring: LiveSystem) -> int:
    """Number of the run's objects in the store: a measure of progress."""
    scores = (keys.scores_prefix(RUN, epoch) for epoch in range(ring.epochs))
    prefixes = (keys.segments_prefix(RUN), keys.run_prefix(RUN), *scores)
    return sum([len(await ring.store.list(prefix)) for prefix in prefixes])


async def _has_progressed(ring: LiveSystem, objects: int) -> bool:
    return await _object_count(ring) > objects
