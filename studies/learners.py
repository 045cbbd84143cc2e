"""Does a run learn the same with two learners as with one? `python -m studies.learners`.

It trains PPO with visit counts on the garden with both numbers of learners and the same seeds, and writes the table of
docs/study.md. The same command resumes: trials that the results files have are not trained again.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Final

from shared.process.cores import usable_cores
from studies.report.generate import ROOT, write_pages
from studies.report.learners import FOLDER, NUMBERS, results_file

ARM: Final = "visits"  # without a reward model, so that judges add no differences of their own
WORLD: Final = "garden"


def study(learners: int, given: argparse.Namespace) -> list[str]:
    """The command of one half. A trial takes a core for each learner."""
    jobs = max(1, usable_cores() // learners)
    out, results = given.out / str(learners), results_file(given.results, learners)
    words = [WORLD, "--arms", ARM, "--seeds", given.seeds, "--epochs", given.epochs, "--epoch-steps", given.epoch_steps]
    words += ["--jobs", jobs, "--out", out, "--results", results]
    if learners > 1:
        words += ["-s", f"learners={learners}"]
    return [sys.executable, "-m", "cli", "study", *map(str, words)]


def main(argv: list[str] | None = None) -> int:
    """Train both halves, one after the other, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.learners", description=__doc__)
    parser.add_argument("--seeds", default="5", help="as of `zelda study`")
    parser.add_argument("--epochs", type=int, default=12, help="epochs of a trial")
    parser.add_argument("--epoch-steps", type=int, default=40_960, help="environment steps of an epoch")
    parser.add_argument("--out", type=Path, default=Path("runs/study-learners"), help="folder of the trials")
    parser.add_argument("--results", type=Path, default=ROOT / FOLDER, help="folder of the results files")
    given = parser.parse_args(argv)
    for learners in NUMBERS:
        ended = subprocess.run(study(learners, given), cwd=ROOT, check=False)  # noqa: S603
        if ended.returncode:
            return ended.returncode  # the study has written what failed, and how it is resumed
    if given.results == ROOT / FOLDER:
        write_pages()
    return 0


if __name__ == "__main__":
    sys.exit(main())
