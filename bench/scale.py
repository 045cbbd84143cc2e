"""What 5, 20 and 50 Ray workers give, computed from the measured cost of each part: `python bench/scale.py`.

The rates are those of `python bench/train.py` on your machine: one env runner's core (sampling through RLlib, divided
by its runners), and the learner alone: 1 / (1 / "sampling and learning" - 1 / "sampling through RLlib").

The rows with learners add one to each worker, on the cores of its env runners, which wait while it computes. Their
batches' costs are those of `python bench/learner.py`. The time of gradients on the network is not included; their
amount is. The last row bounds what asynchronous sampling could give (docs/adr/0019).
"""

import argparse
import json
import sys
from dataclasses import dataclass

WORKERS = (5, 20, 50)
CORES, MEMORY_GIB = 4, 6  # requests of a worker in the chart; one core is left to Ray
HEAD_CORES, HEAD_MEMORY_GIB = 2, 6
ENVIRONMENTS, STEPS_PER_ENV = 4, 128  # of an env runner; in a batch
SEGMENT_MB, SEGMENTS = 0.3, 200  # of an epoch


PASSES = 5  # of a batch through the learner, `ppo.epochs`
MINIBATCH, REFERENCE = 256, 4_096  # `ppo.minibatch`, and the batch that it is meant for


@dataclass(frozen=True)
class BatchCost:
    """Measured CPU seconds of one batch: the part that the driver's learner does alone, and all gradient steps: on
    whole minibatches, and on the share of one learner."""

    building: float
    gradients: float
    share: float


@dataclass(frozen=True)
class Rates:
    """Measured steps per second: of one env runner's core, and of the learner while nothing samples."""

    runner: float
    learner: float
    epoch_steps: int


def row(workers: int, rates: Rates) -> list[str]:
    """One column of the table, for a number of workers: with one learner, then with one more on each worker."""
    return [*alone(workers, rates), *shared(workers, rates)]


def shared(workers: int, rates: Rates) -> list[str]:
    """The rows with a learner on each worker, beside its env runners."""
    learners, runners = workers + 1, workers * (CORES - 1)
    batch = max(REFERENCE, runners * ENVIRONMENTS * STEPS_PER_ENV)
    cost = BATCH_COSTS[workers]
    play, learn = runners * rates.runner, batch / (cost.building + cost.share)
    both = 1 / (1 / play + 1 / learn)
    steps = PASSES * batch / (MINIBATCH * batch / REFERENCE)
    return [
        f"{learners} x 1, {runners} x {ENVIRONMENTS}",
        f"{both:,.0f}",
        f"{rates.epoch_steps / both:,.0f} s",
        f"{SEGMENTS / (rates.epoch_steps / both):.1f}",
        f"{2 * steps * GRADIENT_MB:,.0f} MB in {batch / both:.1f} s",
        "the learners" if play > learn else "the env runners",
        f"{min(play, learn, _all_cores_busy(learners, runners, batch, cost, rates)) / both:.2f}",
    ]


def _all_cores_busy(learners: int, runners: int, batch: int, cost: BatchCost, rates: Rates) -> float:
    """Steps per second if the env runners' cores and the driver's were never idle."""
    seconds_of_a_step = 1 / rates.runner + (cost.building + learners * cost.share) / batch
    return (runners + 1) / seconds_of_a_step


def alone(workers: int, rates: Rates) -> list[str]:
    """The rows with one learner."""
    runners = workers * (CORES - 1)
    play = runners * rates.runner
    both = 1 / (1 / play + 1 / rates.learner)  # the driver samples a batch, then learns it
    seconds = rates.epoch_steps / both
    busy = both / play
    first = "the learner" if play > rates.learner else "the env runners"
    return [
        f"{workers * CORES + HEAD_CORES} / {workers * MEMORY_GIB + HEAD_MEMORY_GIB} GiB",
        f"{runners} x {ENVIRONMENTS}",
        f"{max(4096, runners * ENVIRONMENTS * STEPS_PER_ENV):,}",
        f"{play:,.0f}",
        f"{both:,.0f}",
        f"{busy:.0%}",
        f"{seconds:,.0f} s",
        f"{SEGMENTS / seconds:.1f}",
        f"{SEGMENTS * SEGMENT_MB / seconds:.1f} MB/s",
        first,
    ]


NAMES = (
    "requests of Ray: cores / memory",
    "env runners x environments",
    "steps in a batch",
    "play alone, steps/s",
    "play and learn in turns, steps/s",
    "env runners busy",
    "epoch",
    "judge requests/s and model, to keep up",
    "store, segments written",
    "saturates first",
    "with learners: learners, env runners",
    "play and learn in turns, steps/s",
    "epoch",
    "judge requests/s and model",
    "gradients over each learner's network",
    "saturates first",
    "at most with asynchronous sampling, times",
)


def table(rates: Rates) -> str:
    """The table of docs/sizing.md."""
    columns = [row(workers, rates) for workers in WORKERS]
    head = "| | " + " | ".join(f"{workers} workers" for workers in WORKERS) + " |\n" + "|---" * (len(WORKERS) + 1) + "|"
    lines = [f"| {name} | " + " | ".join(column[i] for column in columns) + " |" for i, name in enumerate(NAMES)]
    return "\n".join([head, *lines])


# `python bench/train.py` with the load ROM, 2 cores, 2026-11-28: 4,289 steps/s by two runners; 2,738 with learning.
MEASURED = Rates(runner=4_289 / 2, learner=1 / (1 / 2_738 - 1 / 4_289), epoch_steps=300_000)


# `python bench/learner.py`, 2 cores, 2026-11-23, beside other work: CPU seconds, batches of 15, 60 and 150 runners.
BATCH_COSTS = {5: BatchCost(0.08, 1.01, 0.24), 20: BatchCost(0.27, 2.82, 0.27), 50: BatchCost(0.70, 7.52, 0.29)}
GRADIENT_MB = 0.84  # the networks on features


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python bench/scale.py", description=__doc__)
    parser.add_argument("--runner", type=float, default=MEASURED.runner, help="steps/s of one env runner's core")
    parser.add_argument("--learner", type=float, default=MEASURED.learner, help="steps/s of the learner alone")
    parser.add_argument("--epoch-steps", type=int, default=MEASURED.epoch_steps, help="steps of an epoch")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    given = parser.parse_args(argv)
    rates = Rates(given.runner, given.learner, given.epoch_steps)
    columns = {workers: list(zip(NAMES, row(workers, rates), strict=True)) for workers in WORKERS}
    sys.stdout.write((json.dumps(columns) if given.json else table(rates)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
