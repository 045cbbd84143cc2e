"""What the batch builder computes of chunks: scaled rewards, curiosity, choices of several steps, pieces of memory."""

from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer

from services.trainer.rl.batch import ADVANTAGES, CURIOSITY_TARGETS, GAME_TARGETS, BatchBuilder
from services.trainer.rl.env_runner import ACTED
from services.trainer.rl.gae import advantages, option_advantages
from services.trainer.rl.learner import CuriosityPPOLearner
from services.trainer.rl.module import CURIOSITY_VALUES, GAME_VALUES, build_policy
from services.trainer.rl.networks.policy_network import BEGINS, MEMORY, MEMORY_SIZE, PIECE_STEPS
from services.trainer.rl.reward_normalisation import RewardScaler
from shared.contracts.learning.ppo import PpoConfig
from tests.unit.trainer.test_learner_equals_stock import GAPS, episodes, learner

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own, on import and build

RND = PpoConfig(curiosity_view="novelty/v1", warm_up_steps=0)


def observed(episode: SingleAgentEpisode) -> np.ndarray:
    """All states of a chunk, (T + 1, 128)."""
    return np.asarray(episode.get_observations(), np.float32)


def values_of(made: Any, episode: SingleAgentEpisode, head: str) -> np.ndarray:
    """What one head of the critic says of all states of a chunk, (T + 1,)."""
    with torch.no_grad():
        found: np.ndarray = made.module[DEFAULT_MODULE_ID].unwrapped().values(torch.from_numpy(observed(episode)))[head]
        return np.asarray(found)


def scaled_rewards(chunks: list[SingleAgentEpisode], discount: float) -> list[np.ndarray]:
    """The rewards of each chunk, divided by the deviation of their discounted sums."""
    raw = [(one.id_, np.asarray(one.get_rewards(), np.float32), one.is_done) for one in chunks]
    return RewardScaler(discount).scaled(raw)


def test_the_unit_of_the_rewards_changes_nothing_that_is_learnt() -> None:
    made, larger = learner(CuriosityPPOLearner, PpoConfig(), lean=True), episodes()
    for one in larger:
        one.rewards.data *= 1000
    found, other = (
        BatchBuilder(PpoConfig(), (128,), False)(rl_module=made.module, episodes=chunks)[DEFAULT_MODULE_ID]
        for chunks in (episodes(), larger)
    )
    torch.testing.assert_close(found[GAME_TARGETS], other[GAME_TARGETS], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found[ADVANTAGES], other[ADVANTAGES], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("hyper", [PpoConfig(), RND], ids=["visits", "rnd"])
def test_each_critic_is_the_baseline_of_its_own_rewards(hyper: PpoConfig) -> None:
    """The game's targets by definition: with curiosity they come from its own head, and from its own scale."""
    made, chunks = learner(CuriosityPPOLearner, hyper, lean=True, curiosity=True), episodes()
    rows = made.builder(rl_module=made.module, episodes=chunks)[DEFAULT_MODULE_ID]
    wanted = []
    for one, rewards in zip(chunks, scaled_rewards(chunks, hyper.discount), strict=True):
        value = values_of(made, one, GAME_VALUES)
        last = 0.0 if one.is_terminated else float(value[-1])
        gain = advantages(rewards, value[:-1], last_value=last, discount=hyper.discount, gae_lambda=hyper.gae_lambda)
        wanted.append(gain + value[:-1])
    np.testing.assert_allclose(rows[GAME_TARGETS].numpy(), np.concatenate(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hyper", [PpoConfig(), RND], ids=["visits", "rnd"])
def test_curiosity_raises_the_advantage_of_what_leads_to_the_new(hyper: PpoConfig) -> None:
    """With a large weight the game hardly counts: the advantages are those of curiosity, and not their opposite."""
    curious = hyper.model_copy(update={"curiosity": 100.0})
    made, chunks = learner(CuriosityPPOLearner, curious, lean=True, curiosity=True), episodes()
    rows = made.builder(rl_module=made.module, episodes=chunks)[DEFAULT_MODULE_ID]
    predicted = np.concatenate([values_of(made, one, CURIOSITY_VALUES)[:-1] for one in chunks])
    gains = rows[CURIOSITY_TARGETS].numpy() - predicted
    assert np.corrcoef(rows[ADVANTAGES].numpy(), gains)[0, 1] > 0.99


def test_an_action_is_paid_for_the_cell_that_it_reaches() -> None:
    """Ten steps in one cell, and the last one leads to a new cell: it alone is paid in full."""
    chunk, *_ = episodes()
    seen = np.zeros_like(observed(chunk))
    seen[-1, 0] = 1.0
    chunk.observations.data[:] = seen
    made = learner(CuriosityPPOLearner, PpoConfig(), lean=True, curiosity=True)
    made.builder(rl_module=made.module, episodes=[chunk])
    steps = len(chunk)
    wanted = ((steps - 1) * (steps - 1) ** -0.5 + 1) / steps
    assert made.builder.figures["novelty"] == pytest.approx(wanted)


def chosen_chunks() -> list[SingleAgentEpisode]:
    """Chunks in which the policy chose in a part of the steps."""
    rng, made = np.random.default_rng(2), episodes()
    for one in made:
        one.extra_model_outputs[ACTED] = InfiniteLookbackBuffer(rng.random(len(one)) < 0.3)
    return made


def test_a_choice_of_several_steps_is_learnt_as_one() -> None:
    """Rows are the choices alone, with the advantages of a semi-Markov chunk; without options they are single steps."""
    hyper, made, chunks = PpoConfig(), learner(CuriosityPPOLearner, PpoConfig(), lean=True), chosen_chunks()
    builder = BatchBuilder(hyper, (128,), False, options=True)
    rows = builder(rl_module=made.module, episodes=chunks)[DEFAULT_MODULE_ID]
    targets, predicted = [], []
    for one, rewards in zip(chunks, scaled_rewards(chunks, hyper.discount), strict=True):
        value, decided = values_of(made, one, GAME_VALUES), one.extra_model_outputs[ACTED].data
        gain = option_advantages(
            rewards,
            value[:-1],
            decided,
            last_value=0.0 if one.is_terminated else float(value[-1]),
            discount=hyper.discount,
            gae_lambda=hyper.gae_lambda,
        )
        targets.append((gain + value[:-1])[decided])
        predicted.append(value[:-1][decided])
    wanted, said = np.concatenate(targets), np.concatenate(predicted)
    np.testing.assert_allclose(rows[GAME_TARGETS].numpy(), wanted, rtol=1e-4, atol=1e-5)
    explained = 1 - (wanted - said).var() / wanted.var()
    assert builder.figures["explained_variance"] == pytest.approx(explained, abs=1e-3), "of the choices alone"


def test_pieces_of_memory_begin_with_each_chunk() -> None:
    """A piece that went on into the next chunk would carry one episode's memory into another."""
    made, chunks = learner(CuriosityPPOLearner, PpoConfig(), lean=True), episodes()
    network = made.module[DEFAULT_MODULE_ID].unwrapped()
    network.pi = build_policy((128,), (32, 32), 8, memory=True)
    for number, one in enumerate(chunks):
        remembered = np.full((len(one), MEMORY_SIZE), number, np.float32)
        one.extra_model_outputs[MEMORY] = InfiniteLookbackBuffer(remembered)
    rows = made.builder(rl_module=made.module, episodes=chunks)[DEFAULT_MODULE_ID]
    begins = np.flatnonzero(rows[BEGINS].numpy()).tolist()
    lengths = [length for _, length in GAPS]
    assert max(lengths) < PIECE_STEPS
    assert begins == [0, *np.cumsum(lengths)[:-1]]
    assert rows[MEMORY][begins, 0].tolist() == [0, 1, 2]
    assert len(rows[Columns.ACTIONS]) == len(rows[MEMORY]) == sum(lengths)
