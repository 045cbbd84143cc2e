"""Memory of each real service with a backlog of 10,000 segments: part of `bench/ring.py`.

Judge and exporter drain their events, the coordinator tracks the run and answers requests, the reward model reads all
scores and trains. Its training runs in a child process, which has its own row.
"""

import asyncio
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.harness.ring_run import RUN
from cli.console import print_status
from cli.stack.layout import StackLayout
from cli.stack.port_owner import family
from cli.stack.ports import PortAllocator
from cli.stack.process import SupervisedProcess
from cli.stack.services import StackPorts, common_settings, service_spec
from shared.bus import topology
from shared.bus.port import Bus
from shared.store import keys
from shared.store.port import Store

TRAINING: Final = "training"
DRAIN: Final = {"judge": topology.JUDGE_SEGMENTS, "exporter": topology.EXPORTER_SEGMENTS}
REAL: Final = ("coordinator", "judge", "rewardmodel", "exporter")
TIMEOUT_S: Final = 300.0
POLL_S: Final = 0.1
VIEWS: Final = ("segments?limit=1000", "scores?limit=1000", "epochs")


def peak_mb(process: SupervisedProcess) -> float:
    """Peak resident set of the process, in megabytes."""
    assert process.process is not None
    return _peak_mb(process.process.pid)


def _peak_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


async def of_services(
    layout: StackLayout, ports: PortAllocator, bus_port: int, bus: Bus, store: Store
) -> dict[str, float]:
    """Peak memory (MB) of each real service after its backlog, one service at a time."""
    others = {name: ports.allocate() for name in REAL}
    stack_ports = StackPorts(bus=bus_port, judge=9, api=others["coordinator"], store=None, services=others)
    settings = common_settings(layout, stack_ports, f"file://{layout.root}/objects") | {"ZELDA_LOG__LEVEL": "error"}
    peaks: dict[str, float] = {}
    for name in REAL:
        process = SupervisedProcess(
            service_spec(name, layout, stack_ports, settings), layout.root / f"{name}.log", print_status
        )
        try:
            await process.start()
            peaks |= await _busy(name, process, bus, store)
            if name == "coordinator":
                await asyncio.to_thread(_ask, stack_ports.api, layout)
            peaks[name] = peak_mb(process)
        finally:
            await process.stop()
    return peaks


async def _busy(name: str, process: SupervisedProcess, bus: Bus, store: Store) -> dict[str, float]:
    """Wait until the service has handled its backlog. Returns the peak of its trainings, if any."""
    peak, deadline = 0.0, time.monotonic() + TIMEOUT_S
    while not await _through(name, bus, store):
        if time.monotonic() > deadline:
            raise SystemExit(f"{name} did not finish its backlog within {TIMEOUT_S:.0f} s")
        if name == "rewardmodel":
            peak = max(peak, _children_mb(process))
        await asyncio.sleep(POLL_S)
    return {TRAINING: peak} if peak else {}


async def _through(name: str, bus: Bus, store: Store) -> bool:
    if name == "coordinator":
        return await store.exists(keys.progress(RUN))  # it has counted every score
    if name == "rewardmodel":
        return await bus.pending(topology.REWARDMODEL_SCORES) == 0 and await store.exists(
            keys.reward_model_card(RUN, 0)
        )
    return await bus.pending(DRAIN[name]) == 0


def _children_mb(process: SupervisedProcess) -> float:
    assert process.process is not None
    found = [0.0]
    for pid in {*family(process.process.pid)} - {process.process.pid}:
        with suppress(OSError, IndexError):  # the process has ended
            found.append(_peak_mb(pid))
    return max(found)


def _ask(port: int, layout: StackLayout) -> None:
    """Send the requests of a user who views a large run."""
    token = next(line for line in layout.tokens().read_text().splitlines() if line.startswith("viewer:"))[7:]
    for what in VIEWS:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/runs/{RUN}/{what}", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
