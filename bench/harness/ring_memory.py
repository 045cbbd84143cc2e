"""What a backlog of 10,000 segments costs each real service in memory; part of `bench/ring.py`.

Judge and exporter drain their events, the coordinator keeps the run's books and answers for it, the reward model takes
all scores and trains. Its training is a process of its own that ends, and is listed by itself.
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
LONGEST_S: Final = 300.0
LOOK_S: Final = 0.1
ASKED: Final = ("segments?limit=1000", "scores?limit=1000", "epochs")


def peak_mb(process: SupervisedProcess) -> float:
    """The largest resident set that the process ever had, in megabytes."""
    assert process.process is not None
    return _peak_mb(process.process.pid)


def _peak_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


async def of_services(
    layout: StackLayout, ports: PortAllocator, bus_port: int, bus: Bus, store: Store
) -> dict[str, float]:
    """Peak memory (MB) of each real service once it is through its backlog, one after the other."""
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
    """Wait until the service is through; the peak of its trainings, if it has any."""
    peak, deadline = 0.0, time.monotonic() + LONGEST_S
    while not await _through(name, bus, store):
        if time.monotonic() > deadline:
            raise SystemExit(f"{name} was not through its backlog after {LONGEST_S:.0f} s")
        if name == "rewardmodel":
            peak = max(peak, _children_mb(process))
        await asyncio.sleep(LOOK_S)
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
    tasks = Path(f"/proc/{process.process.pid}/task")
    found = [0.0]
    for task in tasks.iterdir():
        with suppress(OSError, IndexError):  # it ended while we looked
            found += [_peak_mb(int(pid)) for pid in (task / "children").read_text().split()]
    return max(found)


def _ask(port: int, layout: StackLayout) -> None:
    """Read what people read of a large run."""
    token = next(line for line in layout.tokens().read_text().splitlines() if line.startswith("viewer:"))[7:]
    for what in ASKED:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/runs/{RUN}/{what}", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
