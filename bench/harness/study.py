"""What `zelda study` trains with one trial a core, and the bare emulator on the same world."""

import subprocess
import sys
import tempfile
from pathlib import Path

from bench.harness.measure import ROOT, Figures
from bench.harness.training import CORES, on_all_cores, tick
from services.trainer.driver.evaluation import ENVIRONMENTS, step_limit
from shared.contracts.epoch import EpochFinishedRecord
from studies.plan import StudyPlan

WORLD = "garden"
RAW_S = 4.0


def measure(epochs: int) -> Figures:
    """The figures of a study of `epochs` epochs, of which the first is left out: it holds the start."""
    with tempfile.TemporaryDirectory() as folder:
        _study(Path(folder), epochs)
        plan = StudyPlan.load(Path(folder))
        trained = sum(_rate(store) for store in sorted(Path(folder, "stores").iterdir()))
    run = plan.run
    episode = step_limit(plan.episode_lengths[0], run.epoch_steps)
    evaluated = ENVIRONMENTS * episode / (run.epoch_steps * run.eval_interval) if run.eval_interval else 0.0
    return {
        "study_steps_per_s": trained,
        "study_raw_steps_per_s": on_all_cores(tick, WORLD, run.frame_skip, RAW_S)(),
        "study_evaluation_share": evaluated,
    }


def _study(folder: Path, epochs: int) -> None:
    words = ["study", WORLD, "--arms", "judges", "--seeds", CORES, "--jobs", CORES, "--epochs", epochs, "--out", folder]
    command = [sys.executable, "-m", "cli", *map(str, words)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def _rate(store: Path) -> float:
    """Steps per second of one trial, between the ends of its first and its last epoch."""
    found = [EpochFinishedRecord.from_bytes(path.read_bytes()) for path in store.rglob("finished.json")]
    first, *others = sorted(found, key=lambda one: one.epoch)
    return sum(one.steps for one in others) / (others[-1].created - first.created).total_seconds()
