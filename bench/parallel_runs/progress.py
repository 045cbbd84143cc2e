"""Environment steps over time of runs that train at the same time, from their drivers' heartbeats."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from services.trainer.documents import Heartbeat
from shared.contracts.events import ENDED_STATES
from shared.contracts.ids import RunId
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.port import NotFound, Store

POLL_S = 0.5
TIMEOUT_S = 3_600.0


@dataclass(slots=True)
class StepCurve:
    """Steps of one run since its start, at the times of its heartbeats (Unix seconds)."""

    times: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)

    def add(self, beat: Heartbeat, epoch_steps: int) -> None:
        """Add a heartbeat unless it brings nothing new: what it counts began with its epoch."""
        steps = beat.epoch * epoch_steps + beat.steps
        if steps > (self.steps[-1] if self.steps else 0):
            self.times.append(beat.time.timestamp())
            self.steps.append(steps)

    def at(self, when: float) -> float:
        """Steps at a time between two heartbeats."""
        return float(np.interp(when, self.times, self.steps))


@dataclass(frozen=True, slots=True)
class RatesTogether:
    """Steps per second of all runs together: `training` while each of them trains, `whole` from order to end.

    `cpu_ms` is the CPU time of the whole system for a step, in milliseconds, starts of drivers included.
    """

    training: float
    whole: float
    cpu_ms: float


def rates(curves: Sequence[StepCurve], seconds: float, cpu_s: float) -> RatesTogether:
    """The rates of runs that were ordered together; from order to end they took `seconds`, and `cpu_s` of CPU time.

    RuntimeError if they never trained together.
    """
    begin = max(curve.times[0] for curve in curves)
    end = min(curve.times[-1] for curve in curves)
    if end - begin < 4 * POLL_S:
        raise RuntimeError(f"the runs trained together for {end - begin:.1f} s: order more epochs")
    trained = sum(curve.at(end) - curve.at(begin) for curve in curves)
    steps = sum(curve.steps[-1] for curve in curves)
    return RatesTogether(trained / (end - begin), steps / seconds, cpu_s / steps * 1e3)


async def follow(
    store: Store, runs: Sequence[RunId], epoch_steps: int, each_time: Callable[[], object]
) -> list[StepCurve]:
    """Follow the runs until all have ended, and call `each_time` twice a second. RuntimeError if one did not finish."""
    curves = {run: StepCurve() for run in runs}
    records, deadline = RunRecords(store), time.monotonic() + TIMEOUT_S
    open_ = set(runs)
    while open_:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{sorted(open_)} did not end within {TIMEOUT_S:.0f} s")
        for run in sorted(open_):
            await _read(store, run, curves[run], epoch_steps)
            record = await records.latest(run)
            if record.state == "finished":
                open_.discard(run)
            elif record.state in ENDED_STATES:
                raise RuntimeError(f"{run} is {record.state}: {record.reason}")
        each_time()
        await asyncio.sleep(POLL_S)
    return [curves[run] for run in runs]


async def _read(store: Store, run: RunId, curve: StepCurve, epoch_steps: int) -> None:
    try:
        curve.add(Heartbeat.from_bytes(await store.get(keys.driver_heartbeat(run))), epoch_steps)
    except NotFound:  # the driver has not begun
        return
