"""The newest epoch as metrics: each value in the family that dashboards query; unknown values are NaN."""

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prometheus_client import REGISTRY

from services.coordinator.reconcile import epoch_metrics
from services.coordinator.reconcile.report_writer import ReportWriter
from shared.contracts.card import RewardModelCard
from shared.contracts.driver import Assistance, ModelCalls
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow
from shared.contracts.run import RunRecord
from tests.unit.coordinator.harness import RUN, Harness, started_run, trained_epoch

NOW = datetime(2026, 11, 23, tzinfo=UTC)
FIGURES = {"return_mean": 1.5, "reward/coverage": 0.25, "learner/kl": 0.01, "rooms_mean": 7.0}


def row(**more: object) -> EpochRow:
    known = {"steps": 10, "episodes": 1, "seconds": 1, "votes": 3, "segments_recorded": 4, "segments_judged": 3}
    counts = {"segments_abstained": 1, "segments_dead": 0, "segments_waiting": 0}
    return EpochRow.model_validate({"epoch": 2, "metrics": FIGURES, **known, **counts, **more})


def value(name: str, run: str = RUN, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"zelda_epoch_{name}", {"run": run, **labels})


@pytest.fixture(autouse=True)
def no_run_is_shown() -> Iterator[None]:
    yield
    for now in (NOW, NOW + epoch_metrics.SHOWN_AFTER_END):
        epoch_metrics.keep_only([], now)


def test_before_the_first_epoch_there_is_no_series() -> None:
    module = epoch_metrics.__name__
    code = f"import {module}, prometheus_client as p; print(p.generate_latest().decode())"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "# TYPE zelda_epoch_number gauge" in output
    assert [line for line in output.splitlines() if line.startswith(("zelda_epoch_", "zelda_reward_model_"))] == []


def test_each_value_is_set_in_its_metric_family() -> None:
    epoch_metrics.set_epoch(
        RUN, row(reward_model_epoch=1, reward_model_accuracy=0.8, evaluation={"milestones_mean": 2.0})
    )
    assert value("number") == 2
    assert value("training_value", figure="return_mean") == 1.5
    assert value("training_value", figure="rooms_mean") == 7
    assert value("reward_term_value", term="coverage") == 0.25
    assert value("learner_value", figure="kl") == 0.01
    assert value("evaluation_value", figure="milestones_mean") == 2
    assert value("segments", status="abstained") == 1
    assert value("reward_model_age_epochs") == 1
    assert value("reward_model_accuracy_ratio") == 0.8


def test_an_unknown_value_is_nan() -> None:
    epoch_metrics.set_epoch(RUN, row())
    for name in ("score_ratio", "reward_model_accuracy_ratio", "reward_model_age_epochs"):
        shown = value(name)
        assert shown is not None
        assert math.isnan(shown)


def test_labels_of_an_earlier_epoch_are_cleared() -> None:
    epoch_metrics.set_epoch(RUN, row(evaluation={"milestones_mean": 2.0}))
    epoch_metrics.set_epoch(RUN, row(epoch=3, metrics={"return_mean": 1.0}))
    assert (value("number"), value("training_value", figure="return_mean")) == (3, 1)
    assert value("training_value", figure="rooms_mean") is None
    assert value("reward_term_value", term="coverage") is None
    assert value("learner_value", figure="kl") is None
    assert value("evaluation_value", figure="milestones_mean") is None
    epoch_metrics.set_card(card(baselines={"linear": 0.61}))
    epoch_metrics.set_card(card(baselines={"shuffled": 0.5}))
    assert REGISTRY.get_sample_value("zelda_reward_model_baseline_ratio", {"run": RUN, "baseline": "linear"}) is None


def test_an_alarm_is_set_and_cleared() -> None:
    epoch_metrics.set_epoch(RUN, row(alarm="the judges' scores rise, the milestones fall"))
    assert value("alarm_state") == 1
    epoch_metrics.set_epoch(RUN, row())
    assert value("alarm_state") == 0


def test_a_card_sets_the_metrics_of_its_model() -> None:
    epoch_metrics.set_card(card(spread=0.4, baselines={"linear": 0.61}))
    assert REGISTRY.get_sample_value("zelda_reward_model_spread_value", {"run": RUN}) == 0.4
    assert REGISTRY.get_sample_value("zelda_reward_model_baseline_ratio", {"run": RUN, "baseline": "linear"}) == 0.61
    error = REGISTRY.get_sample_value("zelda_reward_model_ece_ratio", {"run": RUN})
    assert error is not None
    assert math.isnan(error)


CALLS = ModelCalls(outcomes={"answered": 3, "unavailable": 1}, answer_seconds_mean=1.5, breaker="open")
HELPED = Assistance(
    takeovers={"dialog": {"finished": 2}, "puzzle": {"hp_drop": 1}}, suggestions={"taken": 4}, calls={"puzzle": CALLS}
)


def test_who_helped_the_policy_is_shown_by_outcome() -> None:
    epoch_metrics.set_assistance(RUN, HELPED)
    assert value("takeovers", need="dialog", ending="finished") == 2
    assert value("takeovers", need="puzzle", ending="hp_drop") == 1
    assert value("takeovers", need="puzzle", ending="finished") == 0
    assert (value("suggestions", outcome="taken"), value("suggestions", outcome="stale")) == (4, 0)
    assert value("planner_calls", mode="puzzle", outcome="answered") == 3
    assert value("planner_calls", mode="puzzle", outcome="busy") == 0
    assert value("planner_calls", mode="text", outcome="answered") is None, "guidance has no route here"
    assert value("planner_answer_seconds", mode="puzzle") == 1.5
    assert value("planner_breaker_state", mode="puzzle") == 2


def test_an_outcome_of_an_earlier_epoch_becomes_zero() -> None:
    epoch_metrics.set_assistance(RUN, HELPED)
    closed = ModelCalls(outcomes={})
    epoch_metrics.set_assistance(
        RUN, HELPED.model_copy(update={"takeovers": {"dialog": {}}, "calls": {"puzzle": closed}})
    )
    assert value("takeovers", need="dialog", ending="finished") == 0
    assert value("planner_calls", mode="puzzle", outcome="answered") == 0
    assert math.isnan(value("planner_answer_seconds", mode="puzzle") or 0)
    assert value("planner_breaker_state", mode="puzzle") == 0


async def test_help_is_shown_while_the_epoch_plays_and_removed_with_its_run() -> None:
    harness = await started_run()
    await harness.send_heartbeat(assistance=HELPED)
    await harness.passes()
    assert value("takeovers", need="dialog", ending="finished") == 2
    await harness.models.runs.append(await stopped(harness))
    await harness.passes()
    await harness.passes(2, seconds=140)
    await harness.passes(2, seconds=20)
    families = [one for one in REGISTRY.collect() if one.name.startswith("zelda_epoch_")]
    assert not [sample for one in families for sample in one.samples if sample.labels.get("run") == RUN]


async def test_every_active_run_has_its_own_series() -> None:
    harness = await started_run()
    await harness.train(0, metrics={"return_mean": 0.5})
    slow = await harness.models.views.read(await harness.models.runs.latest(RUN))
    await harness.judge(0)
    await harness.train_reward_model(0)
    await harness.passes()
    await harness.train(1, metrics={"return_mean": 1.5})
    fast = await harness.models.views.read(await harness.models.runs.latest(RUN))
    reports = ReportWriter(harness.store, harness.models, harness.now)
    await reports.write(fast, "")
    await reports.write(replace(slow, record=slow.record.model_copy(update={"run": RunId("slow")})), "")
    assert (value("number"), value("training_value", figure="return_mean")) == (1, 1.5)
    assert (value("number", "slow"), value("training_value", "slow", figure="return_mean")) == (0, 0.5)


async def test_the_last_epoch_of_an_ended_run_is_shown_for_five_minutes() -> None:
    harness = await trained_epoch()
    await harness.passes()
    await harness.models.runs.append(await stopped(harness))
    await harness.passes()
    await harness.passes(2, seconds=140)
    assert value("number") == 0, "a server that scrapes every 30 seconds sees the last epoch"
    await harness.passes(2, seconds=20)
    assert value("number") is None
    families = [one for one in REGISTRY.collect() if one.name.startswith(("zelda_epoch_", "zelda_reward_model_"))]
    assert not [sample for one in families for sample in one.samples if sample.labels.get("run") == RUN]


async def test_the_series_of_a_run_that_another_coordinator_ended_are_removed() -> None:
    harness = await trained_epoch()
    epoch_metrics.set_card(card(run="led-by-another", baselines={"linear": 0.61}))
    await harness.passes(3, seconds=150)
    gone = {"run": "led-by-another"}
    assert REGISTRY.get_sample_value("zelda_reward_model_spread_value", gone) is None
    assert REGISTRY.get_sample_value("zelda_reward_model_baseline_ratio", gone | {"baseline": "linear"}) is None
    assert value("number") == 0


async def stopped(harness: Harness) -> RunRecord:
    record = await harness.models.runs.latest(RUN)
    return record.model_copy(update={"revision": record.revision + 1, "state": "stopped"})


def card(**more: object) -> RewardModelCard:
    known = {
        "run": "demo",
        "epoch": 1,
        "observation": "obs/v1",
        "weights_key": "models/x",
        "ensemble": 5,
        "segments": 9,
    }
    digests = {"weights_digest": "0" * 64, "data_digest": "1" * 64, "gates_passed": True, "seconds": 1}
    pairs = {"pairs_train": 10, "pairs_heldout": 5, "accuracy": {"pairs": 5}, "created": datetime.now(UTC)}
    return RewardModelCard.model_validate({**known, **digests, **pairs, **more})
