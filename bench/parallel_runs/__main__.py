"""Five runs at the same time against one alone, on one local system: `python -m bench.parallel_runs [--quick]`.

One run trains alone, five train together, then one alone again, so that a drifting machine shows. Steps per second
count while all runs train (waiting for judges and reward models included), and from the order to the end. Then every
object is read: each segment must have one archive and one score, under its own run, and each learning gauge its label.
Exit code 1 if something was lost, doubled or mixed up.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import httpx

from bench.harness.measure import Figures, parser, report
from bench.parallel_runs.cpu_use import CpuOfDescendants
from bench.parallel_runs.progress import RatesTogether, follow, rates
from bench.parallel_runs.separation import audit, counted, gauge_problems
from cli.console import print_status
from cli.new_run.runner_shape import with_runner_shape
from cli.stack.connections import local_store
from cli.stack.local_stack import LocalStack, StackOptions, run_stack
from shared.contracts.ids import RunId
from shared.process.cores import usable_cores
from shared.store.port import Store

CONFIG: Final[dict[str, Any]] = {
    "world": "garden",
    "rewards": "explore",
    "epoch_steps": 8_192,
    "episode_length": 400,
    "segment_steps": 100,
    "frame_skip": 12,
    "batch_size": 2_048,
    "sampling": {"budget": 40},
}
EPOCHS, TOGETHER = 6, 5
QUICK: Final = {"epoch_steps": 4_096, "sampling": {"budget": 10}}
QUICK_EPOCHS: Final = 3
NO_EXPORTS: Final = {"exporter": {"ZELDA_EXPORT__POLICY": "none"}}  # exports of so small runs would be most of the work
GAUGED: Final = ("coordinator", "judge", "rewardmodel")
SETTLE_S: Final = 5.0  # the coordinator sets the gauges of a last epoch after the run's end


class ParallelRuns:
    """Orders runs on one system and measures them. `problems` are sentences about what was lost or mixed up."""

    def __init__(self, system: LocalStack, config: dict[str, Any]) -> None:
        self.problems: list[str] = []
        self.epochs = self.segments = self.judged = self.ordered = 0
        self._system, self._config, self._cpu = system, config, CpuOfDescendants(os.getpid())
        self._store: Store = local_store(system.settings)

    async def measure(self, prefix: str, number: int) -> RatesTogether:
        """Train so many runs at the same time, check what they left, and return their rates."""
        names = [RunId(f"{prefix}-{one}") for one in range(number)]
        began, used = time.monotonic(), self._cpu.sample()
        await self._order(names)
        curves = await follow(self._store, names, self._config["epoch_steps"], self._cpu.sample)
        found = rates(curves, time.monotonic() - began, self._cpu.sample() - used)
        print_status(f"{prefix}: {found.training:.0f} steps/s")
        await self._check(names)
        return found

    async def _order(self, names: Sequence[RunId]) -> None:
        token = self._system.layout.secret("operator").read_text(encoding="utf-8")
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=self._system.url, headers=headers, timeout=60) as client:
            for name in names:
                self.ordered += 1
                config = {**self._config, "seed": self.ordered}  # equal seeds could hide that runs were mixed up
                (await client.post("/runs", json={"run": name, "config": config})).raise_for_status()

    async def _check(self, names: Sequence[RunId]) -> None:
        await asyncio.sleep(SETTLE_S)
        found = await audit(self._store, names, self._config["epochs"])
        pages = {name: await self._metrics(name) for name in GAUGED}
        self.problems += found.problems + gauge_problems(pages.values(), found.returns)
        self.epochs += found.epochs
        self.segments += found.segments
        self.judged += found.judged
        for service, counter, expected in (
            ("judge", "zelda_judge_segments_total", self.segments),
            ("rewardmodel", "zelda_rewardmodel_trained_total", self.epochs),
        ):
            if (times := counted(pages[service], counter)) != expected:
                self.problems.append(f"{counter} is {times:.0f} after {expected} of them")

    async def _metrics(self, service: str) -> str:
        async with httpx.AsyncClient(timeout=60) as client:
            port = self._system.ports.http_port(service)
            return (await client.get(f"http://127.0.0.1:{port}/metrics")).raise_for_status().text


async def run(config: dict[str, Any], together: int) -> tuple[list[tuple[str, str]], Figures, list[str]]:
    """Start a system, measure, and return the rows, the figures and the problems."""
    with tempfile.TemporaryDirectory(prefix="bench-parallel-") as root:
        async with run_stack(StackOptions(Path(root), extra=NO_EXPORTS), print_status) as system:
            runs = ParallelRuns(system, config)
            before = await runs.measure("before", 1)
            five = await runs.measure("together", together)
            after = await runs.measure("after", 1)
    alone, whole = (before.training + after.training) / 2, (before.whole + after.whole) / 2
    rows = [
        ("shape of a run", f"{config['env_runners']} x {config['envs_per_runner']}, {config['epochs']} epochs"),
        ("one run alone", f"{before.training:,.0f} and {after.training:,.0f} steps/s; with its start {whole:,.0f}"),
        (f"{together} runs together", f"{five.training:,.0f} steps/s; with their start {five.whole:,.0f}"),
        (
            "CPU time of a step",
            f"{before.cpu_ms:.2f} and {after.cpu_ms:.2f} ms alone, {five.cpu_ms:.2f} ms together (starts included)",
        ),
        ("segments", f"{runs.segments} recorded, {runs.judged} judged, in {runs.epochs} epochs"),
        ("lost or mixed up", "; ".join(runs.problems[:5]) or "nothing"),
    ]
    figures: Figures = {
        "together_over_alone": five.training / alone,
        "together_over_alone_with_start": five.whole / whole,
        "alone_after_over_before": after.training / before.training,
        "cpu_together_over_alone": five.cpu_ms * 2 / (before.cpu_ms + after.cpu_ms),
        "problems": len(runs.problems),
    }
    return rows, figures, runs.problems


def main() -> int:
    """Measure and report."""
    options = parser(__doc__ or "")
    options.add_argument("--runs", type=int, default=TOGETHER, help="runs that train together")
    options.add_argument("--runners", type=int, help="env runners of each run; default: what `zelda run start` chooses")
    given = options.parse_args()
    shape = {} if given.runners is None else {"env_runners": given.runners, "envs_per_runner": 4}
    base = {**CONFIG, "epochs": EPOCHS, **shape}
    if given.quick:
        base |= {**QUICK, "epochs": QUICK_EPOCHS}
    rows, figures, problems = asyncio.run(run(with_runner_shape(base, usable_cores()), given.runs))
    report("Parallel runs", rows, figures, given.json)
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
