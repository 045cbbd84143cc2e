"""What a planner did is not learnt: no loss and no gradient comes from its steps, independent of their content."""

from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer

from services.trainer.rl.batch import ADVANTAGES, BatchBuilder
from services.trainer.rl.env_runner import ACTED
from services.trainer.rl.learner import CuriosityPPOLearner
from shared.contracts.learning.ppo import PpoConfig
from tests.unit.trainer.test_learner_equals_stock import episodes, learner

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own, on import and build

HYPER_VALUES = PpoConfig(warm_up_steps=0)


def played(acted: float | None) -> list[SingleAgentEpisode]:
    """Three episodes in which the policy acted in this share of the steps; None is a run without a planner."""
    rng, made = np.random.default_rng(5), episodes()
    for episode in made if acted is not None else []:
        episode.extra_model_outputs[ACTED] = InfiniteLookbackBuffer(rng.random(len(episode)) < (acted or 0.0))
    return made


def garbled(made: list[SingleAgentEpisode]) -> list[SingleAgentEpisode]:
    """The same episodes with other actions and probabilities in the planner's steps."""
    for episode in made:
        others = ~episode.extra_model_outputs[ACTED].data
        actions, logp = episode.actions.data, episode.extra_model_outputs[Columns.ACTION_LOGP].data
        actions[others], logp[others] = 7 - actions[others], -30.0
    return made


def gradients(made: list[SingleAgentEpisode], curiosity: bool) -> dict[str, torch.Tensor]:
    ours = learner(CuriosityPPOLearner, HYPER_VALUES, lean=True, curiosity=curiosity)
    batch = ours.builder(rl_module=ours.module, episodes=made)[DEFAULT_MODULE_ID]
    torch.manual_seed(3)
    network = ours.module[DEFAULT_MODULE_ID].unwrapped()
    loss = ours.compute_loss_for_module(
        module_id=DEFAULT_MODULE_ID, config=None, batch=batch, fwd_out=network._forward_train(batch)
    )
    loss.backward()
    return {name: value.grad.clone() for name, value in network.named_parameters() if value.grad is not None}


@pytest.mark.parametrize("curiosity", [False, True])
def test_gradient_of_the_planners_steps_is_exactly_zero(curiosity: bool) -> None:
    plain, changed = gradients(played(0.6), curiosity), gradients(garbled(played(0.6)), curiosity)
    assert plain.keys() == changed.keys()
    assert all(torch.equal(plain[name], changed[name]) for name in plain)
    assert any(value.abs().sum() > 0 for value in plain.values()), "the policy's own steps are learnt"


def test_batch_holds_the_policys_steps_only_and_counts_all() -> None:
    made = played(0.6)
    acted = np.concatenate([episode.extra_model_outputs[ACTED].data for episode in made])
    ours = learner(CuriosityPPOLearner, HYPER_VALUES, lean=True)
    batch = ours.builder(rl_module=ours.module, episodes=made)[DEFAULT_MODULE_ID]
    assert {len(column) for column in batch.values()} == {int(acted.sum())}
    assert ours.builder.figures["steps"] == len(acted), "every step of the game counts towards the epoch"
    assert float(batch[ADVANTAGES].mean()) == pytest.approx(0.0, abs=1e-5), "standardised over what is learnt"


def test_run_without_a_planner_is_computed_as_before() -> None:
    ours = learner(CuriosityPPOLearner, HYPER_VALUES, lean=True)
    before = BatchBuilder(HYPER_VALUES, (128,), False)(rl_module=ours.module, episodes=played(None))
    everywhere = BatchBuilder(HYPER_VALUES, (128,), False)(rl_module=ours.module, episodes=played(1.1))
    for name, column in before[DEFAULT_MODULE_ID].items():
        assert torch.equal(column, everywhere[DEFAULT_MODULE_ID][name]), name


def test_batch_without_any_step_of_the_policy_changes_nothing() -> None:
    ours = learner(CuriosityPPOLearner, HYPER_VALUES, lean=True)

    class Sampled:
        """What RLlib passes to the learner."""

        episodes: Any = played(0.0)

    before = {name: value.clone() for name, value in ours.module[DEFAULT_MODULE_ID].unwrapped().state_dict().items()}
    for minibatch in ours._create_iterator_if_necessary(training_data=Sampled(), minibatch_size=8):
        ours._update(minibatch.policy_batches)
    after = ours.module[DEFAULT_MODULE_ID].unwrapped().state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert ours.drain_metrics()["policy_steps_share"] == 0.0
