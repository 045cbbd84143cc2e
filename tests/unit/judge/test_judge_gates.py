"""Figures with consequences: a judge whose alpha, drift or position bias is bad does not count in the next epoch."""

from datetime import UTC, datetime
from typing import Any

import pytest

from services.judge.domain.judge_gates import JudgeThresholds, closed_gates
from services.judge.service.gate_keeper import GateKeeper, JudgeGates
from shared.contracts.epoch import EpochStart
from shared.contracts.ids import JudgeName
from shared.contracts.judging.epoch_report import EpochJudging
from shared.contracts.run import RunConfig
from shared.contracts.scores import counted_results
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.judge.harness import GOOD, OpenHarness
from tests.unit.judge.segment_factory import RUN, archive, recorded

LIMITS = JudgeThresholds(alpha=0.5, drift=0.1, position_bias=0.2, canary_accuracy=0.6)


def report(epoch: int = 0, bias: float | None = None, decisions: int = 20, **figures: Any) -> EpochJudging:
    """A report in which `state` has these figures and `puzzle` has none to complain about."""
    plain = {"judged": 30, "abstained": 0, "votes": 90, "canary": 8}
    return EpochJudging.model_validate(
        {
            "run": RUN,
            "epoch": epoch,
            "rubric": keys.RUBRIC,
            "segments": {"judged": 30},
            "votes": 180,
            "judges": {"state": {**plain, **figures}, "puzzle": {**plain, "alpha": {"puzzle": 0.9}}},
            "pairs": {"compared": 10, "decisions": decisions, "bias": bias},
            "created": datetime.now(UTC),
        }
    )


async def put(store: MemoryStore, found: EpochJudging) -> None:
    await store.put(keys.judge_report(found.run, found.epoch), found.to_bytes())


@pytest.mark.parametrize(
    ("figures", "reasons"),
    [
        ({"alpha": {"progress": 0.2, "dialog": 0.6}}, ["alpha 0.40 is below 0.5"]),
        ({"drift": -0.15}, ["drift -0.150 is beyond 0.1"]),
        ({"bias": 0.3}, ["position bias +0.30 is beyond 0.2"]),
        ({"canary_accuracy": 0.55}, ["canary accuracy 0.55 is below 0.6"]),
        ({"drift": 0.2, "bias": -0.4}, ["drift +0.200 is beyond 0.1", "position bias -0.40 is beyond 0.2"]),
    ],
)
def test_each_gate_closes_with_its_reason(figures: dict[str, Any], reasons: list[str]) -> None:
    assert closed_gates(report(**figures), LIMITS, "state") == {"state": reasons}


@pytest.mark.parametrize(
    "figures",
    [
        {"alpha": {"progress": 0.5}, "drift": 0.1, "bias": 0.2, "canary_accuracy": 0.6},
        {"alpha": {"progress": None}, "drift": None, "bias": None},
        {"alpha": {"progress": 0.0}, "judged": 19},
    ],
)
def test_good_unknown_and_few_figures_close_no_gate(figures: dict[str, Any]) -> None:
    assert closed_gates(report(**figures), LIMITS, "state") == {}


def test_as_many_segments_as_the_least_close_a_gate() -> None:
    assert closed_gates(report(drift=0.3, judged=20), LIMITS, "state").keys() == {"state"}


@pytest.mark.parametrize("figures", [{"drift": 0.3, "canary": 4}, {"bias": 0.5, "decisions": 19}])
def test_a_figure_of_few_comparisons_closes_no_gate(figures: dict[str, Any]) -> None:
    assert closed_gates(report(**figures), LIMITS, "state") == {}


def test_a_figure_of_just_enough_comparisons_closes_a_gate() -> None:
    found = closed_gates(report(drift=0.3, canary=5, bias=0.5, decisions=20), LIMITS, "state")
    assert [reason.split(" is ")[0] for reason in found["state"]] == ["drift +0.300", "position bias +0.50"]


def test_position_bias_counts_against_the_judge_of_pairs_alone() -> None:
    assert closed_gates(report(bias=0.4), LIMITS, "puzzle").keys() == {"puzzle"}
    assert closed_gates(report(bias=0.4), LIMITS, None) == {}


async def test_all_processes_keep_the_decision_of_the_first() -> None:
    store = MemoryStore()
    await put(store, report(drift=0.3))
    first = await GateKeeper(store, keys.RUBRIC, LIMITS, None).closed(RUN, 1)
    await put(store, report(drift=0.0))
    assert await GateKeeper(store, keys.RUBRIC, LIMITS, None).closed(RUN, 1) == first
    assert first == {JudgeName("state"): ["drift +0.300 is beyond 0.1"]}


async def test_without_thresholds_nothing_is_read_or_written() -> None:
    store = MemoryStore()
    assert await GateKeeper(store, keys.RUBRIC, JudgeThresholds(), None).closed(RUN, 1) == {}
    assert await GateKeeper(store, keys.RUBRIC, LIMITS, None).closed(RUN, 0) == {}
    assert await store.list(keys.evaluations_prefix(RUN)) == []


async def test_the_epoch_before_is_the_judged_one() -> None:
    store = MemoryStore()
    await put(store, report(drift=0.3))
    for epoch, interval in ((3, 3), (2, 1)):
        config = RunConfig(judge_interval=interval)
        order = EpochStart(run=RUN, epoch=epoch, fence=1, config=config, created=datetime.now(UTC))
        await store.put(keys.epoch_start(RUN, epoch), order.to_bytes())
    keeper = GateKeeper(store, keys.RUBRIC, LIMITS, None)
    assert (await keeper.closed(RUN, 3)).keys() == {"state"}
    assert await keeper.closed(RUN, 2) == {}, "with a judged epoch each, the report of epoch 1 is missing"


async def test_a_missing_or_damaged_report_closes_no_gate() -> None:
    store = MemoryStore()
    assert await GateKeeper(store, keys.RUBRIC, LIMITS, None).closed(RUN, 1) == {}
    await store.put(keys.judge_report(RUN, 1), b"{}")
    assert await GateKeeper(store, keys.RUBRIC, LIMITS, None).closed(RUN, 2) == {}


async def test_damaged_gates_are_decided_again_and_no_segment_is_lost(harness: OpenHarness) -> None:
    one = harness(gates={"drift": 0.1})
    await put(one.store, report(drift=0.3))
    event = await recorded(one.store, archive("s1", GOOD, epoch=1), epoch=1)
    await one.store.put(keys.judge_gates(RUN, 1), b"{")
    await one.runtime.handlers.segment_ready(event)
    assert (await one.scores(epoch=1)).gated == {"state": ["drift +0.300 is beyond 0.1"]}
    stored = JudgeGates.from_bytes(await one.store.get(keys.judge_gates(RUN, 1)))
    assert stored.closed == {"state": ["drift +0.300 is beyond 0.1"]}, "the other processes read the same decision"


async def test_a_damaged_order_closes_no_gate_and_loses_no_segment(harness: OpenHarness) -> None:
    one = harness(gates={"drift": 0.1})
    event = await recorded(one.store, archive("s1", GOOD, epoch=1), epoch=1)
    await one.store.put(keys.epoch_start(RUN, 1), b"{")
    await one.runtime.handlers.segment_ready(event)
    scores = await one.scores(epoch=1)
    assert (scores.status, scores.gated) == ("judged", {})


async def test_a_gated_judge_is_asked_but_does_not_count(harness: OpenHarness) -> None:
    one = harness(gates={"drift": 0.1})
    await put(one.store, report(drift=0.3))
    before, after = [await recorded(one.store, archive("s1", GOOD, epoch=epoch), epoch=epoch) for epoch in (0, 1)]
    await one.runtime.handlers.segment_ready(before)
    await one.runtime.handlers.segment_ready(after)
    free, gated = await one.scores(epoch=0), await one.scores(epoch=1)
    assert free.gated == {}
    assert gated.gated == {"state": ["drift +0.300 is beyond 0.1"]}
    assert [result.judge for result in gated.judges] == ["state", "puzzle", "vision"]
    assert [result.judge for result in counted_results(gated)] == ["puzzle", "vision"]
    assert gated.status == "abstained"  # three tenths of the weights are left, and half is the least
    assert gated.weighted is None
