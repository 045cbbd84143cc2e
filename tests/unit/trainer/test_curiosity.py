"""Curiosity: what it sees, when it begins to pay, and that its predictor leaves the policy's step alone."""

from typing import Any, get_args

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from services.trainer.rl.batch import ADVANTAGES, CURIOSITY_TARGETS, WHITENED
from services.trainer.rl.curiosity.novelty_view import NoveltyView
from services.trainer.rl.learner import CuriosityPPOLearner
from services.trainer.rl.reward_normalisation import RewardNormalisation
from shared.contracts.learning.ppo import CuriosityView, PpoConfig
from shared.game.observation import cells
from shared.game.observation.layout import BLOCKS, INDEX, SIZE
from shared.game.observation.novelty import VIEWS
from shared.game.observation.with_counters import SIZE as WITH_COUNTERS
from tests.unit.trainer.test_learner_equals_stock import episodes, learner

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own, on import and build

RESTLESS = ("trace", "health", "enemies", "people", "things", "frontier", "neighbours")
"""Blocks that change by themselves, with every button, or with the episode's history."""


def changed(observation: np.ndarray, *names: str) -> np.ndarray:
    """The observation with other values of these features."""
    other = observation.copy()
    other[:, [INDEX[name] for name in names]] += 0.5
    return other


def test_a_pressed_button_a_clock_or_a_lost_heart_is_no_news() -> None:
    view, before = NoveltyView((SIZE,), "novelty/v1"), np.zeros((2, SIZE), np.float32)
    kept = {"max_health", "heart_pieces"}
    restless = [f.name for block in BLOCKS for f in block if f.block in RESTLESS and f.name not in kept]

    assert np.array_equal(view.of(changed(before, *restless)), view.of(before))


@pytest.mark.parametrize("name", ["x", "room_bit_0", "sword", "treasures", "small_keys", "dialog", "shutters_open"])
def test_a_place_a_possession_or_a_solved_puzzle_is_news(name: str) -> None:
    view, before = NoveltyView((SIZE,), "novelty/v1"), np.zeros((2, SIZE), np.float32)

    assert view.of(before).shape == (2, *view.shape)
    assert not np.array_equal(view.of(changed(before, name)), view.of(before))


def test_runs_of_before_the_views_see_all_features_in_their_order() -> None:
    view, before = NoveltyView((SIZE,), "obs/v1"), np.random.default_rng(0).random((2, SIZE))

    assert np.array_equal(view.of(before), before)
    assert view.shape == (SIZE,)


def test_curiosity_does_not_see_event_counters() -> None:
    seen = np.random.default_rng(0).random((2, WITH_COUNTERS))

    assert np.array_equal(NoveltyView((WITH_COUNTERS,), "obs/v1").of(seen), seen[:, :SIZE])


def test_every_view_that_a_run_may_name_has_a_list_of_features() -> None:
    assert set(get_args(CuriosityView)) == {*VIEWS, cells.VERSION}


def test_a_surprised_predictor_does_not_shrink_the_policys_step() -> None:
    made = learner(
        CuriosityPPOLearner, PpoConfig(gradient_norm=0.5, curiosity_view="novelty/v1"), lean=True, curiosity=True
    )
    module = made.module[DEFAULT_MODULE_ID].unwrapped()
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    module.pi[-1].bias.grad.fill_(0.01)
    module.rnd_predictor[-1].weight.grad.fill_(1e6)

    made.apply_gradients({})

    assert torch.allclose(module.pi[-1].bias.grad, torch.tensor(0.01))
    predictor = torch.cat([parameter.grad.flatten() for parameter in module.predictor])
    assert float(predictor.norm()) == pytest.approx(0.5, rel=1e-3)


def rnd_learner() -> Any:
    hyper = PpoConfig(warm_up_steps=0, curiosity_view="novelty/v1")
    return learner(CuriosityPPOLearner, hyper, lean=True, curiosity=True)


def test_the_predictor_sees_the_states_that_the_actions_reached() -> None:
    made, chunks = rnd_learner(), episodes()
    rows = made.builder(rl_module=made.module, episodes=chunks)[DEFAULT_MODULE_ID]
    reached = np.concatenate([made.builder.view.of(np.asarray(one.get_observations())[1:]) for one in chunks])
    wanted = RewardNormalisation(made.builder.view.shape, 0.99, 0.99).whitened(reached.astype(np.float32))
    np.testing.assert_allclose(rows[WHITENED].numpy(), wanted, atol=1e-5)


def test_the_predictor_learns_and_its_target_stays() -> None:
    made = rnd_learner()
    network = made.module[DEFAULT_MODULE_ID].unwrapped()
    rows = made.builder(rl_module=made.module, episodes=episodes())[DEFAULT_MODULE_ID]
    before = {name: value.clone() for name, value in network.state_dict().items()}
    made._update({DEFAULT_MODULE_ID: rows})
    after = network.state_dict()
    moved = {name.partition(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert moved == {"pi", "critic", "rnd_predictor"}


def test_a_gradient_that_is_no_number_changes_nothing_and_is_counted() -> None:
    made = rnd_learner()
    network = made.module[DEFAULT_MODULE_ID].unwrapped()
    rows = made.builder(rl_module=made.module, episodes=episodes())[DEFAULT_MODULE_ID]
    before = [parameter.detach().clone() for parameter in network.parameters()]
    made._update({DEFAULT_MODULE_ID: rows | {ADVANTAGES: rows[ADVANTAGES] * float("nan")}})
    assert all(torch.equal(one, other) for one, other in zip(before, network.parameters(), strict=True))
    assert made.drain_metrics()["skipped_steps"] == 1


def test_losses_of_skipped_steps_are_left_out_of_the_means() -> None:
    made = rnd_learner()
    rows = made.builder(rl_module=made.module, episodes=episodes())[DEFAULT_MODULE_ID]
    damaged = rows | {ADVANTAGES: rows[ADVANTAGES] * float("nan")}
    made._update({DEFAULT_MODULE_ID: rows})
    alone = made._drain_losses()

    again = rnd_learner()
    again.builder(rl_module=again.module, episodes=episodes())
    for batch in (damaged, rows, damaged):
        again._update({DEFAULT_MODULE_ID: batch})
    assert again._drain_losses() == pytest.approx(alone)
    again._update({DEFAULT_MODULE_ID: damaged})
    figures = again.drain_metrics()
    assert figures["skipped_steps"] == 3
    assert not alone.keys() & figures.keys(), "no step was made, so no loss is known"


def test_the_bonus_begins_once_the_observations_are_measured() -> None:
    made = learner(
        CuriosityPPOLearner, PpoConfig(warm_up_steps=70, curiosity_view="novelty/v1"), lean=True, curiosity=True
    )
    network = made.module

    first = made.builder(rl_module=network, episodes=episodes())[DEFAULT_MODULE_ID]
    second = made.builder(rl_module=network, episodes=episodes())[DEFAULT_MODULE_ID]

    assert not {CURIOSITY_TARGETS, WHITENED} & set(first)
    assert {CURIOSITY_TARGETS, WHITENED} <= set(second)
    assert made.builder.streams.observations.count == 2 * len(first["obs"])
