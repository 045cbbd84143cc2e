"""Interleaved rounds, tables and the JSON file of all benchmarks.

Two rates are comparable only within one run, in turns of a fraction of a second each: the speed of a machine drifts
more between minutes than most differences are large.
"""

import argparse
import json
import math
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from shared.process.cores import usable_cores

ROOT: Final = Path(__file__).resolve().parents[2]

Figures = dict[str, float]


def arguments(description: str) -> argparse.Namespace:
    """Parse `--json FILE` and `--quick` (a tenth of the rounds, for trying out)."""
    return parser(description).parse_args()


def parser(description: str) -> argparse.ArgumentParser:
    """A parser with the options that all benchmarks have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", type=Path, help="write the figures to this file")
    made.add_argument("--quick", action="store_true", help="fewer rounds; do not quote the figures")
    return made


def interleave(jobs: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Run each job once per round, in turns, and return its results; the first round is a warm-up."""
    results: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(rounds + 1):
        for name, job in jobs.items():
            value = job()
            if turn:
                results[name].append(value)
    return results


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """The ratio of each two neighbouring rounds."""
    return [a / b for a, b in zip(above, below, strict=True)]


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Median of the ratios of neighbouring rounds."""
    return statistics.median(ratios(above, below))


def ratio_within(above: Sequence[float], below: Sequence[float]) -> tuple[float, float]:
    """95 % interval of `ratio`."""
    return median_within(ratios(above, below))


def median_within(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the median: the ranks that contain it with this probability.

    Source: the sign test's interval, in its normal approximation.
    """
    ordered = sorted(values)
    reach = 0.98 * math.sqrt(len(ordered))
    first, last = len(ordered) / 2 - reach, len(ordered) / 2 + reach
    return ordered[max(0, math.floor(first))], ordered[min(len(ordered) - 1, math.ceil(last))]


def median_row(key: str, label: str, values: Sequence[float]) -> tuple[Figures, tuple[str, str]]:
    """The median of values with its 95 % interval: as the figures `key`, `key`_low and `key`_high, and as a row."""
    middle, (low, high) = statistics.median(values), median_within(values)
    return {key: middle, f"{key}_low": low, f"{key}_high": high}, (label, f"{middle:.3f} ({low:.3f} to {high:.3f})")


def process_cpu(pid: int) -> float:
    """CPU seconds of a process: user and system. Raises OSError after its end."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(title: str, rows: Sequence[tuple[str, str]], figures: Figures, target: Path | None) -> None:
    """Print the table with cores and date, and write the figures to `target`."""
    cores = usable_cores()
    sys.stdout.write(f"{title} ({cores} cores, {date.today().isoformat()})\n\n")
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        sys.stdout.write(f"  {name:<{width}}  {value}\n")
    sys.stdout.write("\n")
    for name, figure in figures.items():
        sys.stdout.write(f"  {name} = {figure:.3f}\n")
    if target is not None:
        target.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
