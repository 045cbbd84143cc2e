"""Compares the learning of our lean RLlib pipeline with stock RLlib PPO: `python bench/lean.py`.

Both use the same game, networks, batches and hyperparameters with several seeds: `lean` has our connectors, batch
builder and learner, `stock` has RLlib's. Neither scales rewards, because stock PPO does not. The figure is the area of
the learning curve (mean return of ended episodes, averaged over updates): interquartile mean with a 95 % bootstrap
interval.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

import numpy as np

from bench.harness.measure import ROOT, Figures, report
from shared.process.cores import usable_cores
from shared.process.exits import flush_and_exit
from studies.stats import RESAMPLES, Reals, iqm_estimate, iqm_rows, resampled

SEEDS = 5
STEPS = 81_920
BATCH = 2_048
ENVS = 16
KINDS = ("lean", "stock")


def train(kind: str, seed: int, steps: int) -> list[float]:
    """One run in this process: mean return of the episodes that ended in each update, or NaN."""
    from bench.harness.learning.lean_algorithms import algorithm, plan

    built = algorithm(kind, seed, ENVS, BATCH)
    plan(built)
    curve = []
    for _ in range(steps // BATCH):
        built.train()
        curve.append(mean_return(built))
    built.stop()
    return curve


def mean_return(built: Any) -> float:
    """Mean return of the episodes that ended since the last call."""
    from services.trainer.rl.runners import collect

    ended = [one.reward for found in collect(built, final=False, steps=0) for one in found.summaries]
    return float(np.mean(ended)) if ended else float("nan")


def apart(kind: str, seed: int, steps: int, target: Path) -> "subprocess.Popen[bytes]":
    """The same in a child process: two algorithms in one process would share random generators."""
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, __file__, "--one", kind, str(seed), "--steps", str(steps), "--json", str(target)]
    return subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def curves(seeds: int, steps: int, folder: Path) -> dict[str, Reals]:
    """Curves (seeds, updates) of both kinds, with one process per core."""
    waiting = [(kind, seed) for seed in range(seeds) for kind in KINDS]
    running: list[tuple[tuple[str, int], subprocess.Popen[bytes]]] = []
    cores = usable_cores()
    while waiting or running:
        while waiting and len(running) < cores:
            kind, seed = waiting.pop(0)
            running.append(((kind, seed), apart(kind, seed, steps, folder / f"{kind}-{seed}.json")))
        (kind, seed), process = running.pop(0)
        if process.wait():
            raise SystemExit(f"run {kind} with seed {seed} failed: run `python bench/lean.py --one {kind} {seed}`")
    return {
        kind: np.array([json.loads((folder / f"{kind}-{seed}.json").read_text()) for seed in range(seeds)])
        for kind in KINDS
    }


def compared(found: dict[str, Reals]) -> tuple[list[tuple[str, str]], Figures]:
    """Areas under the curves and the interval of their difference."""
    areas = {kind: np.nanmean(curve, axis=1) for kind, curve in found.items()}
    rng = np.random.default_rng(0)
    draws = {kind: iqm_rows(np.sort(resampled(area, rng), axis=1)) for kind, area in areas.items()}
    low, high = np.quantile(draws["lean"] - draws["stock"], (0.025, 0.975))
    rows: list[tuple[str, str]] = []
    figures: Figures = {}
    for kind, area in areas.items():
        estimate = iqm_estimate(area)
        last = float(np.nanmean(found[kind][:, -5:]))
        rows.append(
            (kind, f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f}), last updates {last:.2f}")
        )
        figures |= {f"{kind}_return": estimate.value, f"{kind}_last": last}
    rows.append(("lean - stock", f"{low:.2f} to {high:.2f} (95 %, {RESAMPLES} resamples)"))
    return rows, figures | {"difference_low": float(low), "difference_high": float(high)}


def main(argv: Sequence[str] | None = None) -> int:
    """Train all runs and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "SEED"), help="a single run, lean or stock")
    options = parser.parse_args(argv)
    if options.one:
        curve = train(options.one[0], int(options.one[1]), options.steps)
        (options.json or Path("/dev/stdout")).write_text(json.dumps(curve) + "\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        rows, figures = compared(curves(options.seeds, options.steps, Path(folder)))
    report(f"Return on garden over {options.steps:,} steps, {options.seeds} seeds", rows, figures, options.json)
    return 0


if __name__ == "__main__":
    flush_and_exit(main())
