"""The ensemble learns a known rule, is evaluated without leaks, and computes equal scores in torch and numpy."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from services.rewardmodel.domain.dataset import SegmentDataset
from services.rewardmodel.domain.gates import GateThresholds
from services.rewardmodel.domain.preferences import RatingArrays
from services.rewardmodel.errors import TrainingCancelled
from services.rewardmodel.training.ensemble import forward, initial_parameters, to_reward_weights, warm_start_parameters
from services.rewardmodel.training.fit import FitConfig
from services.rewardmodel.training.fit_problem import FitProblem, TrainingConfig, standardised_inputs
from services.rewardmodel.training.report import build_report
from services.rewardmodel.training.shuffled_labels import shuffled_accuracy
from services.rewardmodel.training.train import TrainedEnsemble, TrainingTask, train
from services.rewardmodel.training_protocol import TrainingReport
from shared.rewardnet import RewardNet, input_statistics
from tests.unit.rewardmodel.synthetic_judge import judged, rule, wander

NAMES = [f"f{number}" for number in range(128)]
QUICK = TrainingConfig(shuffles=2, fit=FitConfig(max_steps=200, min_steps=200))


def never() -> bool:
    return False


def train_and_report(
    data: SegmentDataset, config: TrainingConfig = QUICK, masked: Sequence[int] = ()
) -> tuple[TrainedEnsemble, TrainingReport]:
    task = TrainingTask(data, "obs/v1", masked)
    trained = train(task, config, never)
    return trained, build_report(task, trained, int(data.epoch.max()), True, NAMES, GateThresholds(), never)


def test_a_known_judging_rule_is_recovered() -> None:
    config = TrainingConfig(shuffles=2, fit=FitConfig(max_steps=1_200))
    trained, found = train_and_report(judged(1_600, 300, active=6), config)
    assert found.accuracy.confident is not None
    assert found.accuracy.confident >= 0.90
    assert found.baselines["linear"] is not None
    assert found.accuracy.confident > found.baselines["linear"] + 0.05  # the rule is not linear
    assert 0.45 <= (found.baselines["shuffled_labels"] or 0) <= 0.55
    assert 0.45 <= (found.baselines["step_index"] or 0) <= 0.55
    assert (found.rank_correlation or 0) > 0.85
    assert set(list(found.sensitivity)[:4]) == {"f0", "f1", "f2", "f3"}
    assert found.reliability is not None
    assert found.reliability.ece <= 0.05
    # The held-out figures must hold for new segments.
    states = wander(np.random.default_rng(99), 500, active=6)
    scores = RewardNet(trained.weights).forward(states.reshape(-1, 128)).reshape(5, 500, -1).mean(axis=(0, 2))
    order, truth = np.argsort(np.argsort(scores)), np.argsort(np.argsort(rule(states).mean(axis=1)))
    assert np.corrcoef(order, truth)[0, 1] > 0.85


def episode_marks_dataset(by_segment: bool) -> SegmentDataset:
    """Random scores per episode, and features that identify the episode and nothing else."""
    rng = np.random.default_rng(0)
    episodes, each = 60, 10
    marks = rng.choice([-1.0, 1.0], (episodes, 128)).astype(np.float32)
    data = judged(episodes * each, episodes)
    episode = np.repeat(np.arange(episodes), each)
    value = rng.uniform(0, 1, episodes)[episode]
    states = np.repeat(marks[episode][:, None], data.states.shape[1], axis=1)
    fold = rng.integers(0, 5, episodes * each) if by_segment else rng.integers(0, 5, episodes)[episode]
    return replace(data, states=states, rated=replace(data.rated, value=value), fold=fold, episode=episode)


def test_only_a_split_by_segment_leaks_the_episode() -> None:
    _, honest = train_and_report(episode_marks_dataset(by_segment=False))
    _, leaking = train_and_report(episode_marks_dataset(by_segment=True))
    assert (honest.accuracy.confident or 1) < 0.62
    assert (leaking.accuracy.confident or 0) > 0.9  # what a split by segment would claim


def test_shuffled_labels_are_chance_on_average() -> None:
    data = judged(300, 80, active=8)
    inputs = torch.from_numpy(data.states)
    found = [
        shuffled_accuracy(FitProblem(inputs, data.rated, data.fold, replace(QUICK, shuffles=4), seed), never) or 0
        for seed in (0, 100)
    ]
    assert 0.45 <= np.mean(found) <= 0.55


def test_equal_data_give_an_equal_model() -> None:
    data = judged(80, 30)
    first, second = (train(TrainingTask(data, "obs/v1", seed=4), QUICK, never).weights for _ in range(2))
    assert np.array_equal(first.hidden1_weight, second.hidden1_weight)


def test_torch_and_numpy_compute_equal_scores() -> None:
    states = wander(np.random.default_rng(0), 20).reshape(-1, 128)
    mean, scale = input_statistics(states)
    parameters = initial_parameters(3, seed=1, width=128)
    inputs = standardised_inputs(states, mean, scale).expand(3, -1, -1)
    weights = to_reward_weights(parameters, slice(0, 3), mean, scale, "obs/v1")
    assert np.abs(RewardNet(weights).forward(states) - forward(parameters, inputs).numpy()).max() < 1e-4


def test_a_warm_start_computes_the_same_function_under_new_statistics() -> None:
    old = wander(np.random.default_rng(0), 40).reshape(-1, 128)
    new = (old * 0.5 + 0.2).astype(np.float32)
    new[:, 9] = 0.3  # constant now
    mean, scale = input_statistics(old)
    weights = to_reward_weights(initial_parameters(5, seed=1, width=128), slice(0, 5), mean, scale, "obs/v1")
    moved_mean, moved_scale = input_statistics(new)
    parameters = warm_start_parameters(weights, moved_mean, moved_scale)
    again = forward(parameters, standardised_inputs(new, moved_mean, moved_scale).expand(5, -1, -1)).numpy()
    assert np.abs(again - RewardNet(weights).forward(new)).max() < 1e-3


def test_the_fit_with_the_lowest_validation_loss_is_kept() -> None:
    data = judged(200, 60, active=8)
    first = train(TrainingTask(data, "obs/v1"), QUICK, never)
    second = train(TrainingTask(data, "obs/v1", previous=first.weights), QUICK, never)
    assert set(first.validation_loss) == {"full", "strict"}
    assert set(second.validation_loss) == {"full", "strict", "warm"}
    assert second.fit == min(second.validation_loss, key=second.validation_loss.__getitem__)
    other = train(TrainingTask(data, "obs/v1", previous=replace(first.weights, observation="pixels/v1")), QUICK, never)
    assert "warm" not in other.validation_loss


def test_scores_are_standardised_over_the_training_states() -> None:
    data = judged(120, 40, active=8)
    weights = train(TrainingTask(data, "obs/v1"), QUICK, never).weights
    scores = RewardNet(weights).forward(data.states.reshape(-1, 128))
    assert np.abs(scores.mean(axis=1)).max() < 1e-3
    assert np.abs(scores.std(axis=1) - 1).max() < 1e-2


def growth_dataset(segments: int = 800) -> SegmentDataset:
    """A judge that rates how much feature 0 grew during the segment, from any start."""
    rng = np.random.default_rng(0)
    data = judged(segments, 200, active=6)
    grown = rng.uniform(-1, 1, segments)
    states = data.states.copy()
    states[:, :, 0] = rng.uniform(-1, 1, segments)[:, None] + np.linspace(0, 1, states.shape[1]) * grown[:, None]
    rated = RatingArrays((grown + 1) / 2, np.full(segments, 0.02), np.ones(segments))
    return replace(data, states=states, rated=rated)


def test_gain_pooling_learns_a_potential_that_mean_pooling_misses() -> None:
    _, by_mean = train_and_report(growth_dataset())
    _, by_gain = train_and_report(growth_dataset(), replace(QUICK, pooling="gain"))
    assert (by_gain.accuracy.confident or 0) > 0.9
    assert (by_gain.accuracy.confident or 0) > (by_mean.accuracy.confident or 1) + 0.1


def test_the_linear_baseline_sees_only_unmasked_features() -> None:
    _, free = train_and_report(judged(300, 100))
    _, blind = train_and_report(judged(300, 100), masked=range(128))
    assert (free.baselines["linear"] or 0) > 0.57
    assert (blind.baselines["linear"] or 1) <= 0.55


@pytest.mark.parametrize("segments", [1, 2, 5, 12])
def test_few_segments_give_finite_weights_and_a_note(segments: int) -> None:
    trained, found = train_and_report(judged(segments, segments))
    assert all(np.isfinite(getattr(trained.weights, name)).all() for name in ("hidden1_weight", "value_weight"))
    assert not all(found.gates.values())
    assert found.notes


def test_a_cancelled_training_ends() -> None:
    with pytest.raises(TrainingCancelled):
        train(TrainingTask(judged(60, 20), "obs/v1"), TrainingConfig(), lambda: True)
