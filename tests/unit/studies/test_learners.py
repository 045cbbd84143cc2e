"""The comparison of one learner with two: what the page says, and that a real difference is not hidden."""

from argparse import Namespace
from pathlib import Path

import pytest

from studies import learners
from studies.curves import Curve
from studies.plan import Trial
from studies.report.learners import NOT_MEASURED, learners_block, results_file
from tests.unit.studies.invented import curve
from tests.unit.studies.test_results import opened

SEEDS = range(5)


def written(folder: Path, number: int, curves: dict[int, Curve]) -> None:
    file = results_file(folder, number)
    results = opened(file)
    results.add({Trial("visits", "garden", seed): one for seed, one in curves.items()}, "abc")
    results.save(file)


def test_equal_curves_show_no_difference(tmp_path: Path) -> None:
    for number in (1, 2):
        written(tmp_path, number, {seed: curve(0.1 * seed, 0.2 * seed) for seed in SEEDS})
    text = learners_block(tmp_path)
    assert "seeds 0, 1, 2, 3, 4," in text
    assert "No difference is shown: the probability that a trial with two learners learns faster is 0.50" in text
    assert "p = 1.00" in text


def test_worse_curves_show_a_difference(tmp_path: Path) -> None:
    written(tmp_path, 1, {seed: curve(0.6, 0.9 + 0.01 * seed) for seed in SEEDS})
    written(tmp_path, 2, {seed: curve(0.0, 0.1 + 0.01 * seed) for seed in SEEDS})
    text = learners_block(tmp_path)
    assert "A difference is shown: the probability that a trial with two learners learns faster is 0.00" in text
    assert "equal up to 0, 0, 0, 0, 0 steps" in text


def test_only_seeds_of_both_are_compared(tmp_path: Path) -> None:
    written(tmp_path, 1, {seed: curve(0.0, 0.5) for seed in SEEDS})
    assert learners_block(tmp_path) == NOT_MEASURED
    written(tmp_path, 2, {1: curve(0.0, 0.5)})
    assert "seeds 1, " in learners_block(tmp_path)


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    for number in (1, 2):
        written(tmp_path, number, {1: curve(0.0, 0.5)})
    text = learners_block(tmp_path)
    assert "learns faster is 0.50 (one seed), exact" in text
    assert " to " not in text.split("| one learner |")[1].split("\n")[0]


@pytest.mark.parametrize(("number", "jobs", "more"), [(1, "4", []), (2, "2", ["-s", "learners=2"])])
def test_both_halves_differ_in_the_learners_alone(
    number: int, jobs: str, more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learners, "usable_cores", lambda: 4)
    given = Namespace(seeds="5", epochs=12, epoch_steps=40_960, out=tmp_path / "out", results=tmp_path)
    _, *words = learners.study(number, given)
    assert words[:4] == ["-m", "cli", "study", "garden"]
    assert words[words.index("--jobs") + 1] == jobs
    assert words[words.index("--results") + 1] == str(tmp_path / f"{number}.json")
    assert words[words.index("--results") + 2 :] == more
