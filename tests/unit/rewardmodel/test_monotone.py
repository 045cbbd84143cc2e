"""A reward model on event counters never falls when a counter rises, whatever its training data say."""

from dataclasses import replace

import numpy as np
import pytest

from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training.fit import FitConfig
from services.rewardmodel.training.fit_problem import TrainingConfig
from services.rewardmodel.training.train import TrainingTask, train
from services.trainer.domain.shaping import ConservativePotential
from shared.game.observation import counters
from shared.rewardnet import RewardNet, RewardWeights
from tests.unit.rewardmodel.synthetic_judge import judged

QUICK = FitConfig(min_steps=80, max_steps=80)


def trained(monotone: bool, previous: RewardWeights | None = None) -> RewardWeights:
    """An ensemble whose labels favour the first counter and punish the second."""
    data = judged(120, 30)
    states = np.sort(np.random.default_rng(0).random((*data.states.shape[:2], counters.SIZE), np.float32), axis=1)
    value = np.clip(states[:, -1, 0] - states[:, 0, 0] - 0.8 * (states[:, -1, 1] - states[:, 0, 1]) + 0.4, 0, 1)
    data = replace(data, states=states, rated=replace(data.rated, value=value.astype(np.float64)))
    config = TrainingConfig(pooling="gain", shuffles=1, fit=replace(QUICK, monotone=monotone))
    return train(TrainingTask(data, counters.VERSION, previous=previous), config, lambda: False).weights


def smallest_step(weights: RewardWeights) -> float:
    """The smallest change of a member's score when one counter rises, also far beyond the training data."""
    rng = np.random.default_rng(1)
    low = rng.random((400, counters.SIZE), np.float32) * 3
    high = low.copy()
    high[np.arange(400), rng.integers(counters.SIZE, size=400)] += rng.random(400, np.float32)
    net = RewardNet(weights)
    return float((net.forward(high) - net.forward(low)).min())


def test_no_score_falls_though_the_labels_punish_a_counter() -> None:
    assert smallest_step(trained(monotone=True)) >= -1e-4
    assert smallest_step(trained(monotone=False)) < -0.1  # the same data without the constraint


def test_a_warm_start_from_a_model_of_any_sign_becomes_monotone() -> None:
    assert smallest_step(trained(monotone=True, previous=trained(monotone=False))) >= -1e-4


@pytest.mark.parametrize(("view", "wanted"), [("counters/v1", True), ("obs/v1", False)])
def test_only_a_model_on_counters_is_monotone(view: str, wanted: bool) -> None:
    assert RewardModelGroup.model_validate({"view": view}).monotone_inputs is wanted
    assert not RewardModelGroup.model_validate({"view": view, "monotone": False}).monotone_inputs


def test_what_more_conservatism_takes_back_is_bounded() -> None:
    """Below 1 / sqrt(M - 1) the potential itself cannot fall: Phi's slope in each member's score stays positive."""
    net = RewardNet(trained(monotone=True))
    rng = np.random.default_rng(2)
    walk = np.cumsum(rng.random((300, counters.SIZE)) / 300, axis=0).astype(np.float32)
    phi = ConservativePotential(net, conservatism=0.5)(walk)
    assert np.diff(phi).min() >= -1e-4
