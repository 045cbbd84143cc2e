"""Finds what limits a client that calls a server: CPU of either process, CPU of other processes, or calls in flight.

`LoadProbe` samples while a benchmark runs; `Load.explain` names the limit. CPU times come from /proc, in cores.
"""

import asyncio
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.harness.measure import process_cpu

SAMPLE_S = 0.05
SATURATED = 0.9  # share of a core from which a single-threaded process counts as CPU-bound
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the client: calls in flight, calls it allows itself, calls that queue, and the loop's lag in s."""

    in_flight: int
    limit: int
    queued: int
    lag_s: float


@dataclass(frozen=True, slots=True)
class Load:
    """CPU in cores (1.0 is one core fully used) and the samples of one measurement."""

    client_cpu: float
    loop_cpu: float
    server_cpu: float
    other_cpu: float
    cores: int
    samples: list[Sample]

    def figures(self) -> dict[str, Any]:
        """The load as JSON: CPU, mean and histogram of calls in flight (in steps of eight), lag of the event loop."""
        histogram = Counter(sample.in_flight // 8 * 8 for sample in self.samples)
        return {
            "client_cpu_cores": round(self.client_cpu, 2),
            "client_loop_cpu_cores": round(self.loop_cpu, 2),
            "server_cpu_cores": round(self.server_cpu, 2),
            "other_cpu_cores": round(self.other_cpu, 2),
            "in_flight_mean": round(self._mean("in_flight"), 1),
            "in_flight_histogram": {f"{low}-{low + 7}": count for low, count in sorted(histogram.items())},
            "concurrency_limit_mean": round(self._mean("limit"), 1),
            "queued_mean": round(self._mean("queued"), 1),
            "loop_lag_ms": round(1000 * self._mean("lag_s"), 1),
        }

    def explain(self, slots: int) -> str:
        """Name the first limit that applies to a client whose server has this many slots."""
        idle = self.cores - self.client_cpu - self.server_cpu - self.other_cpu
        if idle < 0.1 * self.cores and self.other_cpu > 0.1 * self.cores:
            return f"machine: other processes use {self.other_cpu:.2f} of {self.cores} cores and {idle:.2f} are idle"
        if self.client_cpu > SATURATED:  # Python runs one thread at a time
            return f"client CPU: {self.client_cpu:.2f} cores, of which the event loop uses {self.loop_cpu:.2f}"
        if self.server_cpu > SATURATED:
            return f"server CPU: the server uses {self.server_cpu:.2f} cores"
        if idle < 0.1 * self.cores:
            return f"machine: client and server use {self.client_cpu + self.server_cpu:.2f} of {self.cores} cores"
        if self._mean("limit") < slots:
            return f"concurrency limit: {self._mean('limit'):.0f} calls are allowed, the server has {slots} slots"
        if self._mean("in_flight") < slots:
            return f"supply: {self._mean('in_flight'):.0f} calls are in flight, the server has {slots} slots"
        return f"server: {self._mean('in_flight'):.0f} calls are in flight for its {slots} slots"

    def _mean(self, name: str) -> float:
        return statistics.fmean(getattr(sample, name) for sample in self.samples) if self.samples else 0.0


@dataclass
class LoadProbe:
    """Samples `look` (in flight, limit, queued) every 50 ms on the event loop; `server` is a process id."""

    server: int
    look: Callable[[], tuple[int, int, int]]
    _samples: list[Sample] = field(default_factory=list)

    def start(self) -> None:
        """Begin to sample. Call it in the thread of the event loop."""
        self._begun, self._loop_begun = time.monotonic(), time.thread_time()
        self._client, self._server, self._machine = time.process_time(), process_cpu(self.server), _machine_cpu()
        self._task = asyncio.create_task(self._sample())

    def stop(self) -> Load:
        """End and return the load since `start`."""
        self._task.cancel()
        wall = time.monotonic() - self._begun
        client = (time.process_time() - self._client) / wall
        server = (process_cpu(self.server) - self._server) / wall
        busy = (_machine_cpu() - self._machine) / wall
        return Load(
            client_cpu=client,
            loop_cpu=(time.thread_time() - self._loop_begun) / wall,
            server_cpu=server,
            other_cpu=max(0.0, busy - client - server),
            cores=os.cpu_count() or 1,
            samples=self._samples,
        )

    async def _sample(self) -> None:
        while True:
            due = time.monotonic() + SAMPLE_S
            await asyncio.sleep(SAMPLE_S)
            self._samples.append(Sample(*self.look(), time.monotonic() - due))


def _machine_cpu() -> float:
    """CPU seconds of all processes, without idle and I/O wait."""
    fields = [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS
