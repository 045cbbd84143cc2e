"""The solver gate: a reward model trained on judged play pays every milestone of the solver's walk, for good."""

import asyncio
from functools import cache

import numpy as np
import pytest

from services.trainer.domain.shaping import ConservativePotential
from shared.game.observation import counters
from shared.rewardnet import Floats, RewardNet, zero_weights
from studies.gate.__main__ import EPISODES, table
from studies.gate.gate import MIN_RISE, GateResult, SolverWalk, measure_rises, run_gate


@cache
def gate(world: str) -> GateResult:
    return asyncio.run(run_gate(world, EPISODES[world.partition(":")[0]]))


def check(world: str) -> None:
    result = gate(world)
    assert len(result.rises) > 3
    assert not result.failed, table(result, 0.0)


def test_every_milestone_of_the_garden_is_paid_for_good() -> None:
    check("garden")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("world", ["vale", "wild:1"])
def test_every_milestone_of_a_larger_world_is_paid_for_good(world: str) -> None:
    check(world)


def test_the_table_shows_every_milestone_and_the_card() -> None:
    lines = table(gate("garden"), 1.0).splitlines()
    assert "held-out accuracy" in lines[0]
    assert [line.split()[0] for line in lines[2:]] == ["sword", "hedge", "gate", "ember"]


def walk_with(items: list[int]) -> SolverWalk:
    """A walk over 200 new tiles; the counter `items` has these values from steps 50, 120 and 165 on."""
    counts = np.zeros((200, counters.SIZE), np.uint16)
    for step, value in zip((50, 120, 165), items, strict=True):
        counts[step:, counters.INDEX["items"]] = value
    counts[:, counters.INDEX["tiles"]] = np.arange(200)
    return SolverWalk(counts, {"sword": 50, "shield": 120})


class ItemsAndTiles(ConservativePotential):
    """A potential that is the sum of two inputs."""

    def __init__(self) -> None:
        super().__init__(RewardNet(zero_weights(5, counters.VERSION)))

    def __call__(self, observations: Floats) -> Floats:
        total: Floats = observations[:, [counters.INDEX["items"], counters.INDEX["tiles"]]].sum(axis=1)
        return total


def test_a_model_without_opinion_pays_nothing_and_fails() -> None:
    flat = ConservativePotential(RewardNet(zero_weights(5, counters.VERSION)))
    assert [rise.passed for rise in measure_rises(walk_with([1, 2, 2]), flat)] == [False, False]


def test_a_rise_that_is_taken_back_within_fifty_steps_fails() -> None:
    sword, shield = measure_rises(walk_with([1, 2, 1]), ItemsAndTiles())
    assert sword.passed
    assert shield.rise > MIN_RISE
    assert shield.later == pytest.approx(0.0)
    assert not shield.passed


def test_new_tiles_count_only_for_a_milestone_of_new_ground() -> None:
    sword, shield = measure_rises(walk_with([1, 1, 1]), ItemsAndTiles())
    assert (sword.by, shield.by) == (("items",), ("tiles",))
    gain = float(np.log(2) / np.log1p(31))  # of the first item alone
    assert sword.rise == pytest.approx(gain, abs=1e-5)
    assert shield.rise > 0.0
