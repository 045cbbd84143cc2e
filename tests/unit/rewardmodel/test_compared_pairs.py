"""A reward model learns from pairs that a judge compared directly: alone, beside ratings, or not at all."""

import asyncio
import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from services.rewardmodel.domain import folds
from services.rewardmodel.domain.compared_pairs import (
    PairLabel,
    compared_blocks,
    heldout_accuracy,
    heldout_pairs,
    to_preferences,
    training_pairs,
    validation_pairs,
    with_compared,
)
from services.rewardmodel.domain.preferences import PairingConfig, RatingArrays, rating_blocks, stack_blocks
from services.rewardmodel.training.evaluation import heldout_scores, segment_scores, state_scores
from services.rewardmodel.training.train import TrainingTask, train
from shared.contracts.epoch import SegmentRef
from shared.contracts.learning.reward_learning import LabelsConfig
from shared.store import keys
from tests.unit.rewardmodel.harness import RUN, Harness
from tests.unit.rewardmodel.synthetic_judge import judged
from tests.unit.rewardmodel.test_training import QUICK, never

FIVE = 5
EVERY = [PairLabel(first, second, 0.8) for first, second in itertools.combinations(range(10), 2)]
FOLD = np.arange(10) % FIVE


def test_labels_are_soft_and_never_certain() -> None:
    pairs = to_preferences([PairLabel(0, 1, 1.0), PairLabel(2, 3, 0.7), PairLabel(4, 5, 0.5), PairLabel(6, 7, 0.0)])
    assert pairs.target == pytest.approx([0.95, 0.7, 0.5, 0.05])
    assert pairs.confident.tolist() == [True, True, False, True]


@pytest.mark.parametrize("member", range(FIVE))
def test_a_pair_trains_no_member_that_is_measured_on_it(member: int) -> None:
    pairs = to_preferences(EVERY)
    train = training_pairs(pairs, FOLD, member, FIVE)
    validation = validation_pairs(pairs, FOLD, member, FIVE)
    unseen = {folds.heldout_fold(member, FIVE), folds.validation_fold(member, FIVE)}
    assert len(train) == 15  # of the six segments in the other three folds
    assert not unseen & {*FOLD[train.first].tolist(), *FOLD[train.second].tolist()}
    assert len(validation) == 13
    assert folds.heldout_fold(member, FIVE) not in {*FOLD[validation.first].tolist(), *FOLD[validation.second].tolist()}


def test_heldout_pairs_are_measured_in_the_judges_order() -> None:
    pairs = heldout_pairs(to_preferences([PairLabel(0, 5, 0.9), PairLabel(6, 1, 0.2), PairLabel(2, 7, 0.5)]), FOLD)
    assert pairs.first.tolist() == [0, 6]  # the third has no winner
    assert heldout_accuracy(pairs, np.array([2.0, 1, 0, 0, 0, 1, 2, 0, 0, 0])) == 0.5
    assert heldout_accuracy(heldout_pairs(to_preferences([PairLabel(0, 1, 0.9)]), FOLD), np.zeros(10)) is None


def test_one_comparison_weighs_as_much_as_one_rating() -> None:
    rng, config = np.random.default_rng(0), PairingConfig()
    rated = RatingArrays(np.linspace(0, 1, 200), np.zeros(200), np.ones(200))
    blocks, rounds = rating_blocks(rated, np.arange(200), rng, config)
    before = sum(block.weight.sum() for block in blocks)
    compared = to_preferences([PairLabel(2 * one, 2 * one + 1, 0.9) for one in range(50)])
    mixed = with_compared(blocks, rounds, compared, rng)
    added = sum(block.weight.sum() for block in mixed) - before
    assert added / before == pytest.approx(50 / 200, rel=0.05)
    flat = stack_blocks(mixed, tie_share=0.2)
    assert flat is not None
    trained = flat.flatten()
    found = set(zip(trained.first.tolist(), trained.second.tolist(), strict=True))
    assert {(2 * one, 2 * one + 1) for one in range(50)} <= found


def test_blocks_of_compared_pairs_hold_each_pair_once() -> None:
    pairs = to_preferences([PairLabel(one, 99 - one, 0.9) for one in range(50)])
    blocks = compared_blocks(pairs, np.random.default_rng(0), PairingConfig())
    assert blocks is not None
    flat = blocks.flatten()
    assert sorted(zip(flat.first.tolist(), flat.second.tolist(), strict=True)) == [(n, 99 - n) for n in range(50)]
    assert blocks.rows.shape[1] <= PairingConfig().block
    assert compared_blocks(to_preferences([]), np.random.default_rng(0), PairingConfig()) is None


def test_a_model_learns_from_pairs_where_ratings_are_noise() -> None:
    data = judged(120, 40, active=6)
    truth = data.rated.value
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, len(data), (600, 2))
    labels = [PairLabel(int(a), int(b), float(truth[a] > truth[b])) for a, b in drawn if truth[a] != truth[b]]
    noise = replace(data.rated, value=rng.permutation(truth))
    task = TrainingTask(replace(data, rated=noise, compared=to_preferences(labels)), "obs/v1")
    model = train(task, replace(QUICK, labels="pairs"), never)
    scores = segment_scores(state_scores(model.weights, data.states), QUICK.pooling)
    heldout = heldout_scores(scores, data.fold)
    same = [(a, b) for a, b in itertools.combinations(range(len(data)), 2) if data.fold[a] == data.fold[b]]
    right = [(heldout[a] > heldout[b]) == (truth[a] > truth[b]) for a, b in same if abs(truth[a] - truth[b]) > 0.1]
    assert np.mean(right) > 0.75


def test_equal_pairs_give_equal_weights() -> None:
    data = judged(30, 10, active=6)
    labels = to_preferences([PairLabel(one, 29 - one, 0.8) for one in range(15)])
    config = replace(QUICK, labels="both", fit=replace(QUICK.fit, min_steps=20, max_steps=20))
    first, second = (train(TrainingTask(replace(data, compared=labels), "obs/v1"), config, never) for _ in range(2))
    assert (first.weights.value_weight == second.weights.value_weight).all()
    other = train(TrainingTask(data, "obs/v1"), config, never)
    assert (first.weights.value_weight != other.weights.value_weight).any()


def half_against_half(listed: list[SegmentRef]) -> list[tuple[SegmentRef, SegmentRef]]:
    middle = len(listed) // 2
    return list(zip(listed[:middle], reversed(listed[middle:]), strict=True))


async def test_training_waits_for_the_pairs_and_names_them() -> None:
    world = Harness(labels=LabelsConfig(source="both"))
    finished = await world.play(0)
    listed = list(await world.listed(0))
    await world.judge(0, listed)
    training = asyncio.create_task(world.service().epoch_finished(finished))
    await asyncio.sleep(0.3)
    assert not training.done()  # every segment is judged, but the pairs are not selected yet
    pairs = await world.select(0, half_against_half(listed))
    await world.compare(0, pairs[1:])
    await asyncio.sleep(0.3)
    assert not training.done()
    await world.compare(0, pairs[:1])
    await training
    card = await world.card(0)
    assert card.labels == "both"
    assert 20 < card.compared.train <= 48
    assert (card.compared.unused, card.compared.abstained, card.compared.ties) == (0, 0, 0)
    assert card.compared.heldout > 0
    assert card.compared.digest is not None


async def test_pairs_of_unrated_segments_are_counted_and_unused() -> None:
    world = Harness(labels=LabelsConfig(source="pairs"))
    finished = await world.play(0)
    listed = list(await world.listed(0))
    await world.judge(0, listed[1:])
    await world.judge(0, listed[:1], status="abstained")
    await world.compare(0, await world.select(0, half_against_half(listed)))
    await world.service().epoch_finished(finished)
    card = await world.card(0)
    assert (card.labels, card.compared.unused, card.segments) == ("pairs", 1, 95)


async def test_pairs_that_never_come_cost_the_deadline_alone() -> None:
    world = Harness(labels=LabelsConfig(source="both"), deadline_s=1)
    finished = await world.play(0, ended=datetime.now(UTC) - timedelta(seconds=2))
    await world.judge(0, await world.listed(0))
    await world.service().epoch_finished(finished)
    card = await world.card(0)
    assert (card.labels, card.compared.train, card.segments) == ("both", 0, 96)


async def test_a_damaged_selection_is_left_out() -> None:
    world = Harness(labels=LabelsConfig(source="both"))
    finished = await world.play(0)
    await world.judge(0, await world.listed(0))
    await world.store.create(keys.pair_selection(RUN, 0), b"{")
    await world.service().epoch_finished(finished)
    assert (await world.card(0)).compared.train == 0
