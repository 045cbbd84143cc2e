"""Curiosity by visit counts: what is a new cell, what it pays, and that a checkpoint keeps the counts."""

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from services.trainer.rl.batch import ADVANTAGES, CURIOSITY_TARGETS, WHITENED
from services.trainer.rl.curiosity.visit_counts import VisitCounts
from services.trainer.rl.gae import advantages
from services.trainer.rl.learner import CuriosityPPOLearner
from services.trainer.rl.module import CURIOSITY_VALUES
from services.trainer.rl.reward_normalisation import RewardScaler
from shared.contracts.learning.ppo import PpoConfig
from shared.game.observation.layout import BLOCKS, INDEX, SIZE
from tests.unit.trainer.test_learner_equals_stock import episodes, learner

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own, on import and build

RESTLESS = ("health", "enemies", "people", "things", "frontier", "neighbours")
"""Blocks that change by themselves, or with the episode's history."""


def state(**features: float) -> np.ndarray:
    """One observation (1, 128) with these features, all others 0."""
    seen = np.zeros((1, SIZE), np.float32)
    for name, value in features.items():
        seen[0, INDEX[name]] = value
    return seen


def test_a_cell_pays_less_with_every_visit() -> None:
    visits = VisitCounts((SIZE,))
    paid = [float(visits.bonus(state())[0]) for _ in range(4)]
    assert paid == pytest.approx([1.0, 2**-0.5, 3**-0.5, 0.5])
    assert visits.cells == 1


def test_all_visits_of_a_batch_pay_the_same() -> None:
    paid = VisitCounts((SIZE,)).bonus(np.concatenate([state(), state(x=1.0), state(), state()]))
    assert paid.tolist() == pytest.approx([3**-0.5, 1.0, 3**-0.5, 3**-0.5])


@pytest.mark.parametrize("name", ["x", "room_bit_3", "last_a", "last_b", "sword", "treasures", "shutters_open"])
def test_another_place_button_or_possession_is_another_cell(name: str) -> None:
    visits = VisitCounts((SIZE,))
    visits.bonus(state())
    assert visits.bonus(state(**{name: 1.0}))[0] == 1.0


def test_a_direction_matters_only_while_a_button_is_pressed() -> None:
    visits = VisitCounts((SIZE,))
    visits.bonus(np.concatenate([state(), state(last_b=1.0)]))
    assert visits.bonus(state(facing_up=1.0, ahead_tile_low=0.5))[0] == pytest.approx(2**-0.5)
    assert visits.bonus(state(facing_up=1.0, last_b=1.0))[0] == 1.0


def test_a_clock_an_enemy_or_a_lost_heart_is_no_news() -> None:
    visits = VisitCounts((SIZE,))
    visits.bonus(state())
    kept = {"max_health", "heart_pieces"}
    restless = [f.name for block in BLOCKS for f in block if f.block in RESTLESS and f.name not in kept]
    assert visits.bonus(state(**dict.fromkeys(restless, 0.5)))[0] == pytest.approx(2**-0.5)


def test_different_pictures_are_different_cells_but_noise_is_not() -> None:
    visits, rng = VisitCounts((4, 36, 40)), np.random.default_rng(0)
    picture = rng.integers(0, 2, (1, 1, 9, 10)).repeat(4, 2)[..., :36, :].repeat(4, 3) * 200 + 20
    frames = picture.repeat(4, 1).astype(np.uint8)
    visits.bonus(frames)
    assert visits.bonus(frames ^ 1)[0] == pytest.approx(2**-0.5)
    older = frames.copy()
    older[:, 1:] = 255 - older[:, 1:]
    assert visits.bonus(older)[0] == pytest.approx(3**-0.5), "the newest picture comes first, and it alone counts"
    assert visits.bonus(255 - frames)[0] == 1.0


def test_cells_rarely_share_a_place_in_the_table() -> None:
    rng = np.random.default_rng(0)
    many = np.zeros((10_000, SIZE), np.float32)
    many[:, [INDEX["x"], INDEX["y"]]] = rng.integers(-4, 4, (10_000, 2)) / (5, 4)
    bits = [INDEX[f"room_bit_{bit}"] for bit in range(8)]
    many[:, bits] = rng.integers(0, 2, (10_000, 8)) * 2 - 1
    visits = VisitCounts((SIZE,))
    visits.bonus(many)
    assert visits.cells >= 0.95 * len(np.unique(many, axis=0))


def test_the_bonus_reaches_the_advantages_and_the_second_critic() -> None:
    made = learner(CuriosityPPOLearner, PpoConfig(), lean=True, curiosity=True)
    plain = learner(CuriosityPPOLearner, PpoConfig(curiosity=0.0), lean=True, curiosity=True)
    network, same = (one.module[DEFAULT_MODULE_ID].unwrapped() for one in (made, plain))
    same.load_state_dict(network.state_dict())
    rows, without = (one.builder(rl_module=one.module, episodes=episodes())[DEFAULT_MODULE_ID] for one in (made, plain))
    assert not torch.allclose(rows[ADVANTAGES], without[ADVANTAGES])
    assert WHITENED not in rows
    loss = made.compute_loss_for_module(
        module_id=DEFAULT_MODULE_ID, config=None, batch=rows, fwd_out=network._forward_train(rows)
    )
    loss.backward()
    assert network.critic[-1].weight.grad[1].abs().sum() > 0
    assert {CURIOSITY_TARGETS} <= set(rows)
    assert CURIOSITY_VALUES in network.values(rows["obs"])
    assert made.builder.figures["cells"] == network.visits.cells > 0


def test_what_reached_states_pay_goes_on_after_every_end_of_an_episode() -> None:
    """The definition, step by step: each end is worth what the second critic says, discounted as curiosity is."""
    hyper = PpoConfig(discount=0.99, curiosity_discount=0.8)
    made, chunks = learner(CuriosityPPOLearner, hyper, lean=True, curiosity=True), episodes()
    rows = made.builder(rl_module=made.module, episodes=chunks)[DEFAULT_MODULE_ID]
    seen = [np.asarray(chunk.get_observations(), np.float32) for chunk in chunks]
    paid = np.split(VisitCounts((128,)).bonus(np.concatenate([one[1:] for one in seen])), np.cumsum([30, 20]))
    scaled = RewardScaler(0.8).scaled([(one.id_, bonus, one.is_done) for one, bonus in zip(chunks, paid, strict=True)])
    wanted = []
    for observations, bonus in zip(seen, scaled, strict=True):
        with torch.no_grad():
            critic = made.module[DEFAULT_MODULE_ID].unwrapped().values(torch.from_numpy(observations))
        value = critic[CURIOSITY_VALUES].numpy()
        found = advantages(bonus, value[:-1], last_value=value[-1], discount=0.8, gae_lambda=hyper.gae_lambda)
        wanted.append(found + value[:-1])
    np.testing.assert_allclose(rows[CURIOSITY_TARGETS].numpy(), np.concatenate(wanted), rtol=1e-4, atol=1e-5)


def test_a_table_of_counts_is_valid_in_later_versions() -> None:
    visits = VisitCounts((SIZE,))
    visits.bonus(np.concatenate([state(), state(x=1.0, sword=0.5)]))
    assert visits.counts.nonzero()[:, 0].tolist() == [0, 94_512], "a checkpoint's places"


def test_a_checkpoint_keeps_the_counts_and_env_runners_never_see_them() -> None:
    made = learner(CuriosityPPOLearner, PpoConfig(), lean=True, curiosity=True)
    made.builder(rl_module=made.module, episodes=episodes())
    network = made.module[DEFAULT_MODULE_ID].unwrapped()
    other = learner(CuriosityPPOLearner, PpoConfig(), lean=True, curiosity=True).module[DEFAULT_MODULE_ID].unwrapped()
    other.load_state_dict(network.state_dict())
    assert torch.equal(other.visits.counts, network.visits.counts)
    assert not [name for name in network.get_state(inference_only=True) if not name.startswith("pi.")]


def test_the_bonus_fades_when_its_weight_falls_to_nothing() -> None:
    made = learner(CuriosityPPOLearner, PpoConfig(curiosity=2.0, curiosity_end=0.0), lean=True, curiosity=True)
    plain = learner(CuriosityPPOLearner, PpoConfig(curiosity=0.0), lean=True, curiosity=True)
    network, same = (one.module[DEFAULT_MODULE_ID].unwrapped() for one in (made, plain))
    same.load_state_dict(network.state_dict())
    made.done = 1.0
    rows, without = (one.builder(rl_module=one.module, episodes=episodes())[DEFAULT_MODULE_ID] for one in (made, plain))
    assert torch.equal(rows[ADVANTAGES], without[ADVANTAGES])
