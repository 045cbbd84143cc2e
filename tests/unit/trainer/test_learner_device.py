"""Gradient steps on another device: networks and optimiser move there and back, and learn the same."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from torch import nn

from bench.harness.learning.learner_cost import learner_of, play
from services.trainer.driver.session_factory import check_playable
from services.trainer.env.spaces import observation_space
from services.trainer.imitation.demonstrations import Demonstrations
from services.trainer.imitation.loss import ImitationLoss
from services.trainer.rl.batch import select
from services.trainer.rl.learner import CuriosityPPOLearner
from services.trainer.rl.learners import learner_device
from services.trainer.rl.session_config import TrainingSessionConfig, UnplayableRun
from services.trainer.settings import DriverGroup
from shared.contracts.ids import RunId
from shared.contracts.learning.ppo import PpoConfig
from shared.contracts.run import RunConfig

META = torch.device("meta")  # tensors without data: an operation with one of the CPU fails, as with one of a GPU
RUNS = [PpoConfig(), PpoConfig(curiosity_view="novelty/v1", warm_up_steps=0)]
BATCH = 1_024


def learner(hyper: PpoConfig = RUNS[0]) -> CuriosityPPOLearner:
    run = RunConfig(env_runners=0, batch_size=BATCH, ppo=hyper)
    torch.manual_seed(1)
    return learner_of(TrainingSessionConfig.of(RunId("device"), run, DriverGroup(), None))


def batch(of: CuriosityPPOLearner) -> dict[str, torch.Tensor]:
    chunks = play(BATCH, RunConfig())
    columns: dict[str, torch.Tensor] = of.builder(rl_module=of.module, episodes=chunks)[DEFAULT_MODULE_ID]
    return columns


def network(of: CuriosityPPOLearner) -> nn.Module:
    found: nn.Module = of.module[DEFAULT_MODULE_ID].unwrapped()
    return found


@pytest.mark.parametrize("hyper", RUNS, ids=["visits", "rnd"])
@pytest.mark.parametrize("imitates", [False, True])
def test_the_loss_and_its_gradients_stay_on_one_device(hyper: PpoConfig, imitates: bool) -> None:
    made = learner(hyper)
    columns = batch(made)
    if imitates:
        seen = np.zeros((4, *observation_space("obs/v2").shape), np.float32)
        made.imitation = ImitationLoss(Demonstrations(seen, np.zeros(4, np.int64), np.full(4, 0.25)), 0.1)
    network(made).to(META)
    moved = {name: column.to(META) for name, column in columns.items()}
    rows = select(moved, np.arange(64))
    assert {column.device for column in rows.values()} == {META}
    found = network(made)._forward_train(rows)  # type: ignore[operator]
    loss = made.compute_loss_for_module(module_id=DEFAULT_MODULE_ID, config=None, batch=rows, fwd_out=found)
    assert loss.device == META
    loss.backward()  # type: ignore[no-untyped-call]
    learning = [p for p in network(made).parameters() if p.requires_grad]
    assert {p.grad.device for p in learning if p.grad is not None} == {META}
    with pytest.raises(RuntimeError, match="device"):
        network(made)._forward_train(select(columns, np.arange(64)))  # type: ignore[operator]


def trained(made: CuriosityPPOLearner) -> dict[str, torch.Tensor]:
    """The networks after the minibatches of a batch, drawn and learned as RLlib does."""
    np.random.seed(3)
    episodes: Any = type("Sampled", (), {"episodes": play(BATCH, RunConfig())})
    minibatches: Iterator[Any] = made._create_iterator_if_necessary(
        training_data=episodes, minibatch_size=256, num_epochs=2, shuffle_batch_per_epoch=True
    )
    for minibatch in minibatches:
        made._update(minibatch.policy_batches)
    return {name: tensor.clone() for name, tensor in network(made).state_dict().items()}


def test_a_moved_batch_gives_the_same_networks() -> None:
    """Torch takes the numbered processor for another device, so that everything moves there and back."""
    alone, moved = learner(), learner()
    moved.gradient_device = torch.device("cpu", 0)
    assert moved.gradient_device != learner_device.CPU
    there = trained(moved)
    for name, tensor in trained(alone).items():
        assert torch.equal(tensor, there[name]), name
    state = moved.get_optimizer(DEFAULT_MODULE_ID).state_dict()["state"]
    assert state, "the optimiser lost its state on the way"
    learned = {id(p) for group in moved.get_optimizer(DEFAULT_MODULE_ID).param_groups for p in group["params"]}
    assert learned <= {id(p) for p in network(moved).parameters()}, "the optimiser has other parameters"


def test_the_optimiser_moves_with_the_networks() -> None:
    made = learner()
    trained(made)
    optimizer = made.get_optimizer(DEFAULT_MODULE_ID)
    learner_device._move(META, network(made), optimizer)
    found = {value.device for state in optimizer.state.values() for value in state.values()}
    assert found | {parameter.device for parameter in network(made).parameters()} == {META}


def test_a_failed_batch_leaves_nothing_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimiser as well: a checkpoint of its state must not need the device."""
    made, moves = learner(), []
    optimizer, there = made.get_optimizer(DEFAULT_MODULE_ID), torch.device("cpu", 0)
    monkeypatch.setattr(learner_device, "_move", lambda device, *parts: moves.append((device, parts)))
    with pytest.raises(ZeroDivisionError), learner_device.on_device(there, network(made), optimizer, {}):
        _ = 1 / 0
    everything = network(made), optimizer
    assert moves == [(there, everything), (learner_device.CPU, everything)]


def test_a_missing_gpu_is_named_before_the_run_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    driver = DriverGroup(learner_device="cuda")
    config = TrainingSessionConfig.of(RunId("device"), RunConfig(world="garden"), driver, None)
    with pytest.raises(UnplayableRun, match=r"torch finds no GPU here: set cpu"):
        check_playable(config)
