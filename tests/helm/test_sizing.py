"""docs/sizing.md: its table for many workers is computed, with the chart's own sizes."""

import re

from bench import scale
from deploy.generate.values import Values
from shared.contracts.learning.ppo import PpoConfig
from tests.helm.rendering import ROOT

PAGE = (ROOT / "docs/sizing.md").read_text()


def test_the_page_holds_the_computed_table() -> None:
    assert scale.table(scale.MEASURED) in PAGE, "paste the output of `python bench/scale.py`"


def test_the_computation_uses_the_charts_sizes() -> None:
    ray, runs = Values().ray, Values().runs
    assert (ray.workers.resources.requests.cpu, ray.workers.resources.requests.memory) == ("4", "6Gi")
    assert (scale.CORES, scale.MEMORY_GIB) == (4, 6)
    assert ray.head.resources.requests.cpu == str(scale.HEAD_CORES)
    assert (runs.envs_per_runner, runs.steps_per_env) == (scale.ENVIRONMENTS, scale.STEPS_PER_ENV)


def test_the_measured_rates_are_those_of_the_trainers_page() -> None:
    page = (ROOT / "services/trainer/README.md").read_text()
    sampling, learning = (
        float(re.search(rf"^\| {name} \| ([\d,]+)", page, re.MULTILINE)[1].replace(",", ""))  # type: ignore[index]
        for name in ("sampling through RLlib, two runners", "sampling and learning")
    )
    assert scale.MEASURED.runner == sampling / 2
    assert abs(scale.MEASURED.learner - 1 / (1 / learning - 1 / sampling)) < 1


def test_a_faster_learner_moves_the_limit() -> None:
    slow, fast = (scale.Rates(2_000, learner, 300_000) for learner in (5_000, 50_000))
    assert scale.alone(5, slow)[-1] == "the learner"
    assert scale.alone(5, fast)[-1] == "the env runners"


def test_the_costs_of_a_batch_are_those_of_the_page() -> None:
    known = {
        int(batch.replace(",", "")): scale.BatchCost(float(building), float(gradients), float(share))
        for batch, building, gradients, share in re.findall(
            r"^\| ([\d,]+) \| [\d,]+ \| ([\d.]+) s \| ([\d.]+) s \| [\d,]+ \| \d+ \| ([\d.]+) s", PAGE, re.MULTILINE
        )
    }
    for workers, cost in scale.BATCH_COSTS.items():
        assert known[workers * (scale.CORES - 1) * scale.ENVIRONMENTS * scale.STEPS_PER_ENV] == cost


def test_more_learners_help_by_what_they_share() -> None:
    steps = [float(scale.shared(workers, scale.MEASURED)[1].replace(",", "")) for workers in scale.WORKERS]
    single = [float(scale.alone(workers, scale.MEASURED)[4].replace(",", "")) for workers in scale.WORKERS]
    assert [one > 2 * other for one, other in zip(steps, single, strict=True)] == [True] * 3
    assert steps == sorted(steps)


def test_the_decision_on_asynchronous_sampling_rests_on_the_table() -> None:
    bounds = [scale.shared(workers, scale.MEASURED)[-1] for workers in scale.WORKERS]
    decision = (ROOT / "docs/adr/0019-sampling-waits-for-the-learner.md").read_text().replace("\n", " ")
    assert "at most {} times as fast with 5 workers, {} with 20 and {} with 50".format(*bounds) in decision


def test_minibatches_are_those_of_a_run() -> None:
    ppo = PpoConfig()
    assert (ppo.minibatch, ppo.epochs) == (scale.MINIBATCH, scale.PASSES)
