"""The arithmetic of learning, against values worked out by hand or by a slower way."""

import io
import json
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.domain.curriculum import SLOTS, CurriculumShares, mixture, slots_of
from services.trainer.domain.epoch_metrics import EpisodeSummary, epoch_metrics
from services.trainer.driver.checkpoint import (
    Checkpoint,
    optimizer_tensors,
    pack,
    random_state,
    restore_optimizer,
    restore_random,
    unpack,
)
from services.trainer.driver.evaluation import metrics as evaluation_metrics
from services.trainer.rl.gae import advantages, discounted_sums, running_returns
from services.trainer.rl.reward_normalisation import RewardNormalisation, RewardScaler
from services.trainer.rl.running_stats import RunningStats
from shared.errors import Permanent

floats = st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=40)


@given(floats)
def test_discounted_sums_are_those_of_the_definition(values: list[float]) -> None:
    array = np.array(values, np.float32)
    slow = [sum(0.9 ** (later - now) * array[later] for later in range(now, len(array))) for now in range(len(array))]
    np.testing.assert_allclose(discounted_sums(array, 0.9), slow, rtol=1e-4, atol=1e-4)


def test_a_terminal_state_is_worth_0_and_a_cut_one_is_bootstrapped() -> None:
    rewards, values = np.array([1.0, 2.0], np.float32), np.array([0.5, 0.25], np.float32)
    ended = advantages(rewards, values, last_value=0.0, discount=0.9, gae_lambda=0.8)
    cut = advantages(rewards, values, last_value=4.0, discount=0.9, gae_lambda=0.8)
    second = 2.0 - 0.25
    np.testing.assert_allclose(ended, [1.0 + 0.9 * 0.25 - 0.5 + 0.72 * second, second], rtol=1e-6)
    np.testing.assert_allclose(cut[1], second + 0.9 * 4.0, rtol=1e-6)


@given(floats, floats)
def test_a_running_return_goes_on_where_the_last_chunk_ended(first: list[float], second: list[float]) -> None:
    whole = running_returns(np.array(first + second, np.float32), 0.9, 0.0)
    half = running_returns(np.array(first, np.float32), 0.9, 0.0)
    rest = running_returns(np.array(second, np.float32), 0.9, float(half[-1]))
    np.testing.assert_allclose(np.concatenate([half, rest]), whole, rtol=1e-6, atol=1e-6)


@given(st.lists(floats, min_size=1, max_size=5))
def test_moments_of_batches_are_those_of_all_values(batches: list[list[float]]) -> None:
    moments = RunningStats()
    for batch in batches:
        moments.update(np.array(batch))
    every = np.concatenate([np.array(batch) for batch in batches])
    assert moments.mean == pytest.approx(every.mean(), abs=1e-6)
    if every.std() > 1e-3:
        assert moments.std == pytest.approx(every.std(), rel=1e-4)


def test_scaled_rewards_do_not_depend_on_the_unit_in_which_a_profile_pays() -> None:
    rng = np.random.default_rng(0)
    chunks = [(f"e{i}", rng.normal(size=200).astype(np.float32), i % 2 == 0) for i in range(4)]
    small, large = RewardScaler(0.99), RewardScaler(0.99)
    first = small.scaled(chunks)
    second = large.scaled([(name, rewards * 1000, ended) for name, rewards, ended in chunks])
    np.testing.assert_allclose(first, second, rtol=1e-4)


def test_a_second_chunk_of_an_episode_continues_the_first_ones_sum() -> None:
    rewards = np.random.default_rng(0).normal(size=90).astype(np.float32)
    once, twice = RewardScaler(0.99), RewardScaler(0.99)
    for scale in (once, twice):
        scale.scaled([("e", rewards[:30], False)])
    once.scaled([("e", rewards[30:], False)])
    twice.scaled([("e", rewards[30:50], False), ("e", rewards[50:], False)])
    assert twice.state() == pytest.approx(once.state())
    assert twice.open == pytest.approx(once.open)
    whole = RewardScaler(0.99)
    whole.scaled([("e", rewards, False)])
    assert once.open == pytest.approx(whole.open), "nor does it matter in which batch it continues"
    whole.restore(whole.state())
    assert whole.open == {}, "a restart begins new episodes"
    twice.scaled([("e", rewards[:30], False), ("e", rewards[30:], True)])
    assert twice.open == {}


def test_rewards_that_never_vary_are_left_as_they_are() -> None:
    (found,) = RewardScaler(0.99).scaled([("e", np.zeros(5, np.float32), True)])
    assert found.tolist() == [0.0] * 5


def test_rewards_are_divided_by_the_deviation_of_their_discounted_sums() -> None:
    """And nothing is subtracted from them: a step that pays nothing is worth nothing, however much others pay."""
    rewards = np.array([0.0, 4.0, 0.0, 2.0], np.float32)
    sums = running_returns(rewards, 0.5, 0.0)
    assert sums.tolist() == [0.0, 4.0, 2.0, 3.0]
    (found,) = RewardScaler(0.5).scaled([("e", rewards, True)])
    np.testing.assert_allclose(found, rewards / sums.std(), rtol=1e-6)


def test_whitened_observations_have_no_mean_and_unit_deviation() -> None:
    seen = np.random.default_rng(0).normal(7.0, 0.5, (2_000, 2)).astype(np.float32)
    white = RewardNormalisation((2,), 0.99, 0.99).whitened(seen)
    np.testing.assert_allclose(white.mean(0), [0, 0], atol=1e-3)
    np.testing.assert_allclose(white.std(0), [1, 1], atol=1e-3)


def test_whitened_observations_are_bounded_and_equal_after_a_restore() -> None:
    rng = np.random.default_rng(0)
    streams = RewardNormalisation((3,), 0.99, 0.99)
    streams.whitened(rng.normal(size=(500, 3)).astype(np.float32) * 100)
    copy = RewardNormalisation((3,), 0.99, 0.99)
    copy.restore(json.loads(json.dumps(streams.state())))
    odd = np.array([[1e6, 0, -1e6]], np.float32)
    white = streams.whitened(odd)
    assert np.abs(white).max() <= 5.0
    assert np.array_equal(white, copy.whitened(odd))


def test_each_reward_stream_restores_its_own_scale() -> None:
    before, after = (RewardNormalisation((2,), 0.99, 0.99) for _ in range(2))
    for stream, unit in ((before.game, 100.0), (before.curiosity, 1.0)):
        stream.scaled([("e1", np.array([0.0, unit, 0.0], np.float32), True)])
    after.restore(before.state())
    assert (after.game.sums.std, after.curiosity.sums.std) == (before.game.sums.std, before.curiosity.sums.std)
    assert after.game.sums.std > 50 * after.curiosity.sums.std


def test_equal_checkpoints_have_equal_bytes_and_restore_everything() -> None:
    network = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1, fused=True)
    network(torch.ones(3)).sum().backward()
    optimizer.step()
    saved = Checkpoint(network.state_dict(), optimizer_tensors(optimizer), {"random": random_state()})
    data = pack(saved)
    assert data == pack(saved)
    drawn = torch.rand(2)
    found = unpack(data)
    restore_random(found.state["random"])
    assert torch.equal(torch.rand(2), drawn)
    fresh = torch.nn.Linear(3, 2)
    fresh.load_state_dict(found.weights)
    other = torch.optim.Adam(fresh.parameters(), lr=0.1, fused=True)
    restore_optimizer(other, found.optimizer)
    for one in (optimizer, other):
        one.zero_grad()
    for net, one in ((network, optimizer), (fresh, other)):
        net(torch.ones(3) * 2).sum().backward()
        one.step()
    assert torch.equal(network.weight, fresh.weight)


def zip_of(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in members.items():
            file.writestr(name.replace("_", "."), data)
    return buffer.getvalue()


FOREIGN = zip_of(state_json=b"{}", weights_safetensors=b"pickled", optimizer_safetensors=b"pickled")


@pytest.mark.parametrize("data", [b"", b"no zip", b"PK\x05\x06" + bytes(18), FOREIGN])
def test_an_unreadable_checkpoint_is_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(Permanent, match="checkpoint unreadable"):
        unpack(data)


def test_shares_become_slots_and_the_rest_begins_at_the_true_start() -> None:
    slots = mixture(CurriculumShares((0.2, 0.1)))
    assert (slots.count(1), slots.count(2), slots.count(0), len(slots)) == (20, 10, 70, SLOTS)
    assert [CurriculumShares(shares).last for shares in ((), (0.0,), (0.2, 0.1), (0.2, 0.0))] == [0, 0, 2, 1]
    with pytest.raises(ValueError, match=r"at most 0\.5"):
        CurriculumShares((0.3, 0.3))
    with pytest.raises(ValueError, match="negative"):
        CurriculumShares((-0.1,))
    with pytest.raises(ValueError, match="so small that no episode would begin there"):
        CurriculumShares((0.006, 0.006))  # one slot for both


@pytest.mark.parametrize(
    ("shares", "slots"),
    [
        ((), []),
        ((0.015,) * 20, [2] * 10 + [1] * 10),
        ((0.125,) * 8, [13] * 4 + [12] * 4),
        ((0.333, 0.333, 0.334), [33, 33, 34]),
        ((0.206, 0.102, 0.104), [21, 10, 10]),
    ],
)
def test_slots_sum_to_the_sum_of_the_shares(shares: tuple[float, ...], slots: list[int]) -> None:
    assert slots_of(shares) == slots


def test_shares_in_hundredths_have_the_slots_that_they_always_had() -> None:
    for hundredths in range(101):
        share = hundredths / SLOTS
        assert slots_of([share, 1 - share]) == [round(share * SLOTS), round((1 - share) * SLOTS)]


def episode(
    steps: int = 10, reward: float = 1.0, complete: bool = True, from_start: bool = True, **facts: float
) -> EpisodeSummary:
    return EpisodeSummary("e", steps, reward, {"room": reward}, facts, complete, from_start)


def test_cut_or_helped_episodes_do_not_count_as_achievements() -> None:
    metrics = epoch_metrics(
        [
            episode(reward=1, rooms=2),
            episode(reward=3, rooms=9, from_start=False),
            episode(steps=9, reward=100, rooms=100, complete=False),
        ]
    )
    assert (metrics["return_mean"], metrics["rooms_max"], metrics["episodes"]) == (2.0, 2.0, 2.0)
    assert metrics["reward/room"] == 2.0
    assert epoch_metrics([episode(reward=5, complete=False)])["return_mean"] == 5.0
    assert epoch_metrics([]) == {}


def test_the_standard_error_of_a_mean_needs_two_episodes() -> None:
    metrics = epoch_metrics([episode(reward=reward, rooms=1) for reward in (1, 3, 5, 7)])
    assert metrics["return_sem"] == pytest.approx(1.291, abs=1e-3)
    assert metrics["rooms_sem"] == 0.0
    assert "return_sem" not in epoch_metrics([episode(reward=1)])


def test_an_episode_without_a_step_is_none() -> None:
    assert epoch_metrics([episode(reward=3), episode(steps=0, reward=-9, complete=False)])["return_mean"] == 3.0
    assert epoch_metrics([episode(steps=0, complete=False)]) == {}


def test_an_open_episode_of_just_the_usual_length_has_had_its_time() -> None:
    metrics = epoch_metrics([episode(rooms=2), episode(complete=False, rooms=6)])
    assert metrics["rooms_mean"] == 4.0


def test_milestones_count_in_an_open_episode_of_average_length() -> None:
    died = episode(steps=100, reward=1, milestones=0, deaths=1)
    survives = episode(steps=5_000, reward=50, complete=False, milestones=4, deaths=0)
    hardly_begun = episode(steps=20, reward=0, complete=False, milestones=0, deaths=0)
    metrics = epoch_metrics([died, survives, hardly_begun])
    assert (metrics["milestones_mean"], metrics["milestones_max"]) == (2.0, 4.0)
    assert (metrics["return_mean"], metrics["length_mean"], metrics["deaths_mean"]) == (1.0, 100.0, 1.0)


def test_short_restarted_episodes_do_not_make_a_barely_begun_one_count() -> None:
    whole = [episode(steps=3_000, milestones=8, deaths=1) for _ in range(4)]
    barely_begun = [episode(steps=500, complete=False, milestones=1) for _ in range(3)]
    restarted = [episode(steps=200, reward=2, from_start=False, milestones=0) for _ in range(40)]
    alone, beside = epoch_metrics(whole + barely_begun), epoch_metrics(whole + barely_begun + restarted)
    assert alone["milestones_mean"] == beside["milestones_mean"] == 8.0
    assert alone["deaths_mean"] == beside["deaths_mean"] == 1.0
    assert (beside["episodes"], beside["return_max"]) == (44.0, 2.0), "other metrics count every episode"


def test_open_episodes_stand_in_where_only_restarted_ones_are_complete() -> None:
    begun = [episode(steps=steps, complete=False, milestones=steps / 10) for steps in (10, 30)]
    restarted = [episode(steps=20, from_start=False, milestones=9) for _ in range(5)]
    assert epoch_metrics(begun + restarted)["milestones_mean"] == 2.0
    assert "milestones_mean" not in epoch_metrics(restarted)


def test_where_no_episode_is_complete_the_open_ones_stand_in() -> None:
    metrics = epoch_metrics([episode(steps=steps, complete=False, milestones=steps / 10) for steps in (10, 30)])
    assert (metrics["milestones_mean"], metrics["length_mean"], metrics["episodes"]) == (2.0, 20.0, 2.0)


def test_in_evaluation_the_survivors_count_beside_the_one_that_died() -> None:
    survivors = [
        EpisodeSummary(f"e0001-r9000-v0{env}-0000", 3_750, 10.0, {}, {"milestones": 3, "deaths": 0}, complete=False)
        for env in (0, 2, 3, 4, 5, 6, 7)
    ]
    died = EpisodeSummary("e0001-r9000-v01-0000", 150, 3.0, {}, {"milestones": 3, "deaths": 1})
    second_try = EpisodeSummary("e0001-r9000-v01-0001", 3_600, 10.0, {}, {"milestones": 9}, complete=False)
    found = evaluation_metrics([died, *survivors, second_try])
    assert (found["episodes"], found["return_mean"], found["milestones_mean"]) == (7.0, 9.0, 3.0)
    assert found["deaths_mean"] == pytest.approx(1 / 7)
    assert found["best_action/episodes"] == 1.0
