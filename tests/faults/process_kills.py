"""`kill -9` of every process of a running ring by role: services, servers, children, Ray, and `zelda up` itself."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cli.stack.port_owner import family
from cli.stack.services import SERVICES
from tests.child_processes import command_of
from tests.faults.injection import KILL_INTERVAL_S, Injection
from tests.faults.live_system import LiveSystem

KILLS: Final = 15
MIN_FAULTS: Final = 10  # of a round; kills make up what a scenario lacks
DRIVER_KILLS: Final = 2  # among the kills that follow: a driver needs half a minute to start on a busy machine
KILL_ALL_ROUNDS: Final = 3
CHILD_KILLS: Final = 6
CHILD_WAIT_S: Final = 3.0
AIMED_EPOCH: Final = 1  # when it is played, the rest of the run suffices for other kills
CHILDREN: Final = {
    "driver": ("trainer", "services.trainer.driver"),
    "training": ("rewardmodel", "services.rewardmodel.training.worker"),
}
RAY: Final = ("gcs_server", "raylet")  # the driver starts them; their arguments name no module
RAY_KILLS: Final = 3
RESTARTS: Final = 3


async def random_kills(round_: Injection) -> str:
    """`kill -9` of one random process at a time: services, bus and rules judge."""
    for _ in range(KILLS):
        await asyncio.sleep(round_.rng.uniform(*KILL_INTERVAL_S))
        kill_process(round_, round_.rng.choice((*SERVICES, "bus", "rules-judge")))
    return f"{KILLS} kills"


async def kill_all_services(round_: Injection) -> str:
    """`kill -9` of all five services together, several times."""
    for _ in range(KILL_ALL_ROUNDS):
        await asyncio.sleep(round_.rng.uniform(1.0, 10.0))
        for name in SERVICES:
            kill_process(round_, name)
    return f"all killed {KILL_ALL_ROUNDS} times"


async def child_kills(round_: Injection) -> str:
    """`kill -9` of the children by role: the driver while it records segments, and the training of a reward model.

    A run fails after five drivers that recorded nothing, and a driver takes up to a minute to start: it is left alone
    until it has recorded a segment.
    """
    killed, recorded = Counter[str](), 0
    while killed.total() < CHILD_KILLS and not await round_.ring.has_finished(AIMED_EPOCH):
        role = round_.rng.choice([*CHILDREN])
        await asyncio.sleep(round_.rng.uniform(*KILL_INTERVAL_S))
        segments = await round_.ring.segment_count()
        if role == "driver" and segments <= recorded:
            continue
        if pid := await _child(round_.ring, role):
            killed[role] += _kill_child(round_, role, pid)
            recorded = segments if role == "driver" else recorded
    return ", ".join(f"{role} killed {times} times" for role, times in sorted(killed.items()))


async def ray_kills(round_: Injection) -> str:
    """`kill -9` of the processes of the driver's Ray, in turn, each after the driver has recorded segments."""
    killed, recorded = Counter[str](), 0
    while killed.total() < RAY_KILLS and not await round_.ring.has_finished(AIMED_EPOCH):
        await asyncio.sleep(round_.rng.uniform(*KILL_INTERVAL_S))
        name = RAY[killed.total() % len(RAY)]
        segments, pid = await round_.ring.segment_count(), _find_program(round_.ring, name)
        if segments > recorded and pid and _kill_child(round_, "ray", pid):
            killed[name] += 1
            recorded = segments
    return ", ".join(f"{name} killed {times} times" for name, times in sorted(killed.items()))


async def supervisor_kills(round_: Injection) -> str:
    """`kill -9` of `zelda up`, with which all its processes end, and `zelda up` again, after new segments each time."""
    restarts = recorded = 0
    while restarts < RESTARTS and not await round_.ring.has_finished(AIMED_EPOCH):
        await asyncio.sleep(round_.rng.uniform(*KILL_INTERVAL_S))
        if (segments := await round_.ring.segment_count()) > recorded:
            recorded = segments
            await round_.ring.lose_supervisor()
            round_.hit("kill", "zelda up")
            restarts += 1
    return f"`zelda up` killed {restarts} times"


async def add_kills(round_: Injection, *, store: bool, minimum: int = MIN_FAULTS) -> int:
    """Kill what was hit least, until the round has `minimum` faults; return the number of kills.

    `store`: whether segments may be dropped.
    """
    kills = drivers = 0
    while round_.number < minimum:
        await asyncio.sleep(round_.rng.uniform(*KILL_INTERVAL_S))
        pids = {role: pid for role in CHILDREN if (pid := _find_child(round_.ring, role))}
        if drivers >= DRIVER_KILLS:
            pids.pop("driver", None)
        roles = [*SERVICES, "bus", "rules-judge", *pids, *(("store",) if store else ())]
        round_.rng.shuffle(roles)
        role = min(roles, key=round_.of)
        killed = _kill_child(round_, role, pids[role]) if role in pids else kill_process(round_, role)
        drivers += killed and role == "driver"
        kills += killed
    return kills


async def _child(ring: LiveSystem, role: str) -> int | None:
    """The running child of this role, if there is one within a few seconds."""
    deadline = time.monotonic() + CHILD_WAIT_S
    while time.monotonic() < deadline:
        if pid := _find_child(ring, role):
            return pid
        await asyncio.sleep(0.2)
    return None


def _find_child(ring: LiveSystem, role: str) -> int | None:
    service, module = CHILDREN[role]
    return next((pid for pid in _descendants(ring, service) if module in command_of(pid)), None)


def _find_program(ring: LiveSystem, name: str) -> int | None:
    """The process of the driver's Ray with this program."""
    return next((pid for pid in _descendants(ring, "trainer") if Path(command_of(pid)[0]).name == name), None)


def _descendants(ring: LiveSystem, service: str) -> Iterable[int]:
    process = ring.process(service).process
    return family(process.pid) if process is not None else ()


def _kill_child(round_: Injection, role: str, pid: int) -> bool:
    """`kill -9` of a child; whether it still ran."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    round_.hit("kill", role)
    return True


def kill_process(round_: Injection, name: str) -> bool:
    """`kill -9`; whether the process still ran."""
    process = round_.ring.process(name)
    if process.process is None or process.exit_code is not None:
        return False
    try:
        round_.ring.kill(name)
    except ProcessLookupError:
        return False
    round_.hit("kill", name)
    return True
