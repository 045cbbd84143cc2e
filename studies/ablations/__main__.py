"""What does each technique add? `python -m studies.ablations` trains the method and its variants and evaluates them.

Each variant is a study of the vale with the same seeds and steps; then its policies play 100 episodes from the true
start. The same command resumes: what a results file has is neither trained nor played again. `--variants A,B` takes
some of them, so that several cores share the work.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from shared.process.cores import usable_cores
from studies.ablations.variants import EPISODE_STEPS, EXPLORED, VARIANTS, Variant
from studies.options import parse_seeds
from studies.plan import Trial
from studies.report.ablations import FOLDER, EvaluatedPolicy, VariantResults, results_file
from studies.report.generate import ROOT, write_pages
from studies.results import RESULT_FILE, Results

WORLD: Final = "vale"
EPOCH_STEPS: Final = 81_920
EPISODES: Final = 100
FIRST_SEED: Final = 1_000  # of the evaluation's episodes


def study(variant: Variant, given: argparse.Namespace) -> list[str]:
    """The command that trains a variant."""
    words = [WORLD, "--seeds", given.seeds, "--rewards", "sparse", "--epochs", given.epochs]
    words += ["--epoch-steps", EPOCH_STEPS, "--frame-skip", 4, "--episode-length", EPISODE_STEPS, *variant.words]
    words += ["-s", f"eval_interval={given.epochs}"]  # the policies' own evaluation counts, with more episodes
    if "restarts.explore" in variant.settings:
        words += ["--explored", EXPLORED]
    words += ["--jobs", given.jobs, "--out", given.out / variant.name]
    return [sys.executable, "-m", "cli", "study", *map(str, words)]


def evaluate(folder: Path, trial: Trial) -> EvaluatedPolicy:
    """Play the episodes with the trial's last policy."""
    words = ["policy", "evaluate", trial.name, "--episodes", EPISODES, "--steps", EPISODE_STEPS, "--seed", FIRST_SEED]
    command = [sys.executable, "-m", "cli", *map(str, words), "--json"]
    store = (folder / "stores" / trial.name).resolve().as_uri()
    env = {**os.environ, "ZELDA_STORE__URL": store}
    ended = subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE)  # noqa: S603
    return EvaluatedPolicy.model_validate(json.loads(ended.stdout))


def measure(variant: Variant, given: argparse.Namespace) -> int:
    """Train and evaluate the seeds that the variant's file lacks; the exit code of the study."""
    file = results_file(given.results, variant.name)
    seeds = parse_seeds(given.seeds)
    found = VariantResults.load(file) if file.exists() else None
    if found is not None and set(seeds) <= set(found.seeds):
        return 0
    if found is not None and found.steps != given.epochs * EPOCH_STEPS:
        sys.stderr.write(
            f"{file} holds policies trained for {found.steps:,} steps, --epochs {given.epochs} trains for "
            f"{given.epochs * EPOCH_STEPS:,}: use --epochs {found.steps // EPOCH_STEPS}, or another --results.\n"
        )
        return 2
    ended = subprocess.run(study(variant, given), cwd=ROOT, check=False)  # noqa: S603
    if ended.returncode:
        return ended.returncode  # the study has written what failed, and how it is resumed
    trained = Results.load(given.out / variant.name / RESULT_FILE)
    commits = {one.seed: one.commit for one in trained.trials.get(variant.arm, [])}
    command = f"python -m studies.ablations --seeds {given.seeds} --epochs {given.epochs}"
    found = found or VariantResults(
        title=variant.title,
        command=command,
        date=trained.date,
        commit=trained.commit,
        cores=trained.cores,
        steps=trained.steps,
    )
    for seed in seeds:
        if seed not in found.seeds:
            policy = evaluate(given.out / variant.name, Trial(variant.arm, WORLD, seed))
            found.add(seed, policy.model_copy(update={"commit": commits[seed]}), command, trained)
            found.save(file)
    return 0


def main(argv: list[str] | None = None) -> int:
    """Measure the variants, one after the other, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.ablations", description=__doc__)
    parser.add_argument("--variants", default=",".join(VARIANTS), help=f"some of {', '.join(VARIANTS)}")
    parser.add_argument("--seeds", default="311:312,314:315,316:317", help="as of `zelda study`")
    parser.add_argument("--epochs", type=int, default=20, help="epochs of a trial")
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="trials at the same time")
    parser.add_argument("--out", type=Path, default=Path("runs/ablations"), help="folder of the trials")
    parser.add_argument("--results", type=Path, default=ROOT / FOLDER, help="folder of the results files")
    given = parser.parse_args(argv)
    chosen = given.variants.split(",")
    if unknown := [name for name in chosen if name not in VARIANTS]:
        parser.error(f"--variants: no variant is named {unknown[0]}: choose of {', '.join(VARIANTS)}")
    given.out = given.out.resolve()
    for name in chosen:
        if code := measure(VARIANTS[name], given):
            return code
    if given.results == ROOT / FOLDER:
        write_pages()
    return 0


if __name__ == "__main__":
    sys.exit(main())
