"""The comparison of one learner with two, from the results files of `python -m studies.learners`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from studies.curves import SCORES, TITLES, Curve
from studies.report.tables import p_text
from studies.results import Results
from studies.stats import Estimate, Reals, improvement_estimate, iqm_estimate, permutation_p

FOLDER: Final = "docs/results/learners"
NUMBERS: Final = (1, 2)
NAMES: Final = {1: "one learner", 2: "two learners"}
SIGNIFICANT: Final = 0.05
NOT_MEASURED: Final = "Not measured yet: `python -m studies.learners` trains the trials and writes their table here."


def results_file(folder: Path, learners: int) -> Path:
    """The results file of the trials with this number of learners."""
    return folder / f"{learners}.json"


def learners_block(folder: Path) -> str:
    """The text of the page; InvalidStudy if a file is damaged."""
    files = [results_file(folder, number) for number in NUMBERS]
    if not all(file.exists() for file in files):
        return NOT_MEASURED
    first, second = map(Results.load, files)
    one, two = _same_seeds(first), _same_seeds(second)
    seeds = sorted(one.keys() & two.keys())
    if not seeds:
        return NOT_MEASURED
    pairs = [(one[seed], two[seed]) for seed in seeds]
    source = f"`python -m studies.learners` ({second.cores} cores, {second.date}, [results](results/learners)):"
    return "\n\n".join(
        [f"{source} seeds {_listed(seeds)}, {second.steps:,} steps each.", _table(pairs), _verdict(pairs)]
    )


def _same_seeds(results: Results) -> dict[int, Curve]:
    return {trial.seed: curve for trial, curve in results.curves().items()}


def _table(pairs: Sequence[tuple[Curve, Curve]]) -> str:
    lines = ["| | " + " | ".join(f"{title}: IQM (95 %)" for title in TITLES.values()) + " |", "|---" * 4 + "|"]
    for place, number in enumerate(NUMBERS):
        cells = [_interval(iqm_estimate(_scores(pairs, place, score)), len(pairs)) for score in SCORES]
        lines.append(f"| {NAMES[number]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _verdict(pairs: Sequence[tuple[Curve, Curve]]) -> str:
    one, two = (_scores(pairs, place, "speed") for place in (0, 1))
    better, p = improvement_estimate([two], [one]), permutation_p([two], [one])
    found = "A difference is shown" if p < SIGNIFICANT else "No difference is shown"
    equal = [_equal_until(*pair) for pair in pairs]
    return (
        f"{found}: the probability that a trial with two learners learns faster is {_interval(better, len(pairs))}, "
        f"exact p = {p_text(p)}. The evaluations of both are equal up to {_listed(equal)} steps; sums of floats are "
        "rounded differently, and from then on the trials take different actions."
    )


def _equal_until(one: Curve, two: Curve) -> int:
    """Steps of the last evaluation before the first that differs; 0 if the first one differs."""
    steps = 0
    for at, first, second in zip(one.steps, one.share, two.share, strict=False):
        if first != second:
            break
        steps = at
    return steps


def _scores(pairs: Sequence[tuple[Curve, Curve]], place: int, score: str) -> Reals:
    return np.array([SCORES[score](pair[place]) for pair in pairs])


def _interval(estimate: Estimate, seeds: int) -> str:
    """With one seed every resample is the same: a bootstrap of it has no width."""
    interval = "one seed" if seeds == 1 else f"{estimate.low:.2f} to {estimate.high:.2f}"
    return f"{estimate.value:.2f} ({interval})"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)
