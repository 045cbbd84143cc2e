"""The `ppo` block: what it refuses, what its values do, and what runs of before it keep."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from torch import Tensor

from services.trainer.imitation.demonstrations import Demonstrations
from services.trainer.imitation.loss import ImitationLoss
from services.trainer.rl.batch import ADVANTAGES, GAME_TARGETS, WHITENED
from services.trainer.rl.learner import CuriosityPPOLearner
from services.trainer.rl.session_config import TrainingSessionConfig
from services.trainer.settings import DriverGroup
from shared.contracts.epoch import EpochStart
from shared.contracts.ids import RunId
from shared.contracts.learning.ppo import CuriosityView, PpoConfig, ValueLoss
from shared.contracts.run import RunConfig
from tests.unit.trainer.test_learner_equals_stock import Unscaled, episodes, learner

RARE = 15.0  # deviations: what the sword is worth beside the rewards of random play


def value_gradient(kind: ValueLoss, error: float) -> float:
    """The gradient of the value loss at this error."""
    critic = learner(CuriosityPPOLearner, PpoConfig(value_loss=kind), lean=True)
    value = torch.tensor([error], requires_grad=True)
    loss: Tensor = critic._value_loss(value, torch.zeros(1))
    loss.backward()  # type: ignore[no-untyped-call]
    assert value.grad is not None
    return float(value.grad)


def test_the_critic_learns_from_a_rare_large_reward() -> None:
    assert value_gradient("squared", RARE) == pytest.approx(2 * RARE)
    assert value_gradient("huber", RARE) == pytest.approx(2.0)
    assert value_gradient("clamped", RARE) == 0.0


def test_all_value_losses_agree_on_small_errors() -> None:
    kinds: tuple[ValueLoss, ...] = ("squared", "huber", "clamped")
    assert [value_gradient(kind, 0.5) for kind in kinds] == pytest.approx([1.0, 1.0, 1.0])


@pytest.mark.parametrize(("floor", "divided_by_floor"), [(1e-4, False), (10.0, True)])
def test_small_advantages_stay_small_below_the_floor(floor: float, divided_by_floor: bool) -> None:
    hyper = PpoConfig(advantage_floor=floor)
    builder = Unscaled(hyper)
    network = learner(CuriosityPPOLearner, hyper, lean=True).module

    found = builder(rl_module=network, episodes=episodes())[DEFAULT_MODULE_ID][ADVANTAGES]

    wanted = builder.figures["advantage_deviation"] / floor if divided_by_floor else 1.0
    assert float(found.std(correction=0)) == pytest.approx(wanted, rel=1e-3)


def test_minibatches_and_learning_rate_follow_the_batch() -> None:
    ppo = PpoConfig(reference_batch=4_096, learning_rate=3e-4, learning_rate_end=1e-4)
    larger = ppo.scaled_to(16 * 4_096)
    assert larger.minibatch_of(16 * 4_096) == 16 * 256, "as many gradient steps as with the smaller batch"
    assert (larger.learning_rate, larger.learning_rate_end) == pytest.approx((1.2e-3, 4e-4))
    assert larger.scaled_to(16 * 4_096) == larger, "scaled once"
    assert ppo.scaled_to(4_096) == ppo.scaled_to(1_024) == ppo
    assert PpoConfig().scaled_to(76_800) == PpoConfig()


def test_a_session_learns_with_the_values_of_its_batch() -> None:
    run = RunConfig(batch_size=8_192, ppo=PpoConfig(reference_batch=4_096))
    assert TrainingSessionConfig.of(RunId("m1"), run, DriverGroup(), None).ppo.minibatch == 512


def test_schedules_fall_on_a_straight_line_to_their_end() -> None:
    ppo = PpoConfig(learning_rate=4e-4, learning_rate_end=0.0, entropy=0.02, entropy_end=0.01)
    assert [ppo.learning_rate_at(done) for done in (0.0, 0.5, 1.0, 1.2)] == pytest.approx([4e-4, 2e-4, 0.0, 0.0])
    assert [ppo.entropy_at(done) for done in (0.0, 0.5, 1.0)] == pytest.approx([0.02, 0.015, 0.01])
    assert PpoConfig(curiosity=2.0, curiosity_end=1.0).curiosity_at(0.5) == pytest.approx(1.5)


def test_the_optimiser_steps_with_the_scheduled_learning_rate() -> None:
    made = learner(CuriosityPPOLearner, PpoConfig(learning_rate=4e-4, learning_rate_end=0.0), lean=True)
    made.done = 0.25
    made.apply_gradients({})
    optimizer = made.get_optimizer(DEFAULT_MODULE_ID)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([3e-4])


@pytest.mark.parametrize("view", ["cells/v1", "novelty/v1"])
def test_the_loss_is_the_weighted_sum_of_its_parts(view: CuriosityView) -> None:
    hyper = PpoConfig(value_coefficient=0.3, entropy=0.1, curiosity_view=view, warm_up_steps=0)
    made = learner(CuriosityPPOLearner, hyper, lean=True, curiosity=True)
    shown = Demonstrations(np.zeros((2, 128), np.float32), np.array([0, 1]), np.array([0.5, 0.5]))
    made.imitation = ImitationLoss(shown, coefficient=0.7)
    rows = made.builder(rl_module=made.module, episodes=episodes())[DEFAULT_MODULE_ID]
    found = made.module[DEFAULT_MODULE_ID].unwrapped()._forward_train(rows)
    loss = made.compute_loss_for_module(module_id=DEFAULT_MODULE_ID, config=None, batch=rows, fwd_out=found)
    part = made.drain_metrics()
    values = part["value_loss"] + part["curiosity_value_loss"]
    wanted = part["policy_loss"] + 0.3 * values - 0.1 * part["entropy"] + 0.7 * part["imitation_loss"]
    assert float(loss.detach()) == pytest.approx(wanted + part.get("predictor_loss", 0.0), rel=1e-4)
    assert ("predictor_loss" in part) == (view == "novelty/v1")


def test_the_predictor_learns_from_its_share_of_the_rows() -> None:
    hyper = PpoConfig(curiosity_view="novelty/v1", warm_up_steps=0, predictor_share=0.2)
    made = learner(CuriosityPPOLearner, hyper, lean=True, curiosity=True)
    network = made.module[DEFAULT_MODULE_ID].unwrapped()
    rows = made.builder(rl_module=made.module, episodes=episodes())[DEFAULT_MODULE_ID]
    made.compute_loss_for_module(
        module_id=DEFAULT_MODULE_ID, config=None, batch=rows, fwd_out=network._forward_train(rows)
    )
    wanted = network.novelty(rows[WHITENED][: round(0.2 * len(rows[ADVANTAGES]))]).mean()
    assert made.drain_metrics()["predictor_loss"] == pytest.approx(float(wanted.detach()), rel=1e-4)


def test_the_entropy_bonus_falls_as_scheduled() -> None:
    made = learner(CuriosityPPOLearner, PpoConfig(entropy=0.4, entropy_end=0.0), lean=True)
    rows = made.builder(rl_module=made.module, episodes=episodes())[DEFAULT_MODULE_ID]
    found = made.module[DEFAULT_MODULE_ID].unwrapped()._forward_train(rows)

    def loss_after(done: float) -> float:
        made.done = done
        loss = made.compute_loss_for_module(module_id=DEFAULT_MODULE_ID, config=None, batch=rows, fwd_out=found)
        return float(loss.detach())

    begun, middle, end = (loss_after(done) for done in (0.0, 0.5, 1.0))
    entropy = made.drain_metrics()["entropy"]
    assert [end - begun, end - middle] == pytest.approx([0.4 * entropy, 0.2 * entropy], rel=1e-3)


def test_a_gradient_step_has_the_gradient_of_its_own_minibatch() -> None:
    """The rate is so small that the networks stay: an equal minibatch has an equal gradient, which adds to no other."""
    made = learner(CuriosityPPOLearner, PpoConfig(learning_rate=1e-12, gradient_norm=1_000.0), lean=True)
    rows = made.builder(rl_module=made.module, episodes=episodes())[DEFAULT_MODULE_ID]
    found = []
    for _ in range(2):
        made._update({DEFAULT_MODULE_ID: rows})
        found.append(torch.cat([one.grad.flatten() for one in made._params.values() if one.grad is not None]).clone())
    torch.testing.assert_close(found[1], found[0])
    assert float(found[0].norm()) > 0


def test_each_pass_through_a_batch_has_an_order_of_its_own() -> None:
    made = learner(CuriosityPPOLearner, PpoConfig(), lean=True)
    drawn = [
        minibatch.policy_batches[DEFAULT_MODULE_ID][GAME_TARGETS]
        for minibatch in made._create_iterator_if_necessary(
            training_data=SimpleNamespace(episodes=episodes()),
            num_epochs=3,
            minibatch_size=75,
            shuffle_batch_per_epoch=True,
        )
    ]
    first, *others = drawn[:3]
    for other in others:
        assert not torch.equal(other, first)
        torch.testing.assert_close(other.sort().values, first.sort().values)


def test_figures_of_an_earlier_batch_are_not_reported_again() -> None:
    made = learner(CuriosityPPOLearner, PpoConfig(), lean=True)
    made.builder(rl_module=made.module, episodes=episodes())
    assert "reward_scale" in made.drain_metrics()
    assert made.drain_metrics() == {}, "all runners are down: nothing was learnt"


def test_losses_of_an_earlier_batch_are_not_part_of_the_next_mean() -> None:
    made = learner(CuriosityPPOLearner, PpoConfig(), lean=True)
    for updates in (1, 0):
        rows = made.builder(rl_module=made.module, episodes=episodes())[DEFAULT_MODULE_ID]
        for _ in range(updates):
            made._update({DEFAULT_MODULE_ID: rows})
        assert ("policy_loss" in made.drain_metrics()) == bool(updates)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"learning_rate": 1e-4, "learning_rate_end": 1e-3}, "a schedule only falls"),
        ({"profile": "seed"}, "profile"),
        ({"gamma": 0.9}, "gamma"),
        ({"discount": 1.0}, "discount"),
    ],
)
def test_wrong_values_are_refused_with_their_field(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        PpoConfig.model_validate(values)


def test_schedules_end_with_the_last_batch_of_the_run() -> None:
    run = RunConfig(epochs=3, epoch_steps=6_000, batch_size=4_096, ppo=PpoConfig(entropy_end=0.001))
    assert TrainingSessionConfig.of(RunId("m1"), run, DriverGroup(), None).planned_steps == 3 * 8_192


def test_a_schedule_needs_planned_epochs() -> None:
    with pytest.raises(ValueError, match="set epochs"):
        RunConfig(run_hours=2, ppo=PpoConfig(entropy_end=0.001))


def test_the_seeds_profile_keeps_fields_that_are_given() -> None:
    seeds = PpoConfig.model_validate({"profile": "seeds", "epochs": 4})
    assert (seeds.value_loss, seeds.entropy, seeds.epochs) == ("clamped", 0.01, 4)


def test_a_stored_order_of_before_the_block_keeps_its_values() -> None:
    order = EpochStart(run=RunId("old"), epoch=0, fence=0, config=RunConfig(), created=datetime.now(UTC))
    stored = json.loads(order.to_bytes())
    del stored["config"]["ppo"], stored["config"]["actions"], stored["config"]["observation"]
    read = EpochStart.from_bytes(json.dumps(stored).encode()).config
    assert (read.actions, read.ppo.value_loss, read.ppo.entropy) == ("actions/v1", "clamped", 0.02)
    assert (read.observation, read.ppo.curiosity_view) == ("obs/v1", "obs/v1")
    assert EpochStart.from_bytes(order.to_bytes()).config == RunConfig()


def test_a_stored_block_without_later_fields_keeps_the_old_values() -> None:
    order = EpochStart(run=RunId("old"), epoch=0, fence=0, config=RunConfig(), created=datetime.now(UTC))
    stored = json.loads(order.to_bytes())
    del stored["config"]["ppo"]["curiosity_view"], stored["config"]["ppo"]["advantage_floor"]
    read = EpochStart.from_bytes(json.dumps(stored).encode()).config
    assert read.ppo == RunConfig().ppo.model_copy(update={"curiosity_view": "obs/v1", "advantage_floor": 1e-4})
