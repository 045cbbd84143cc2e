"""Our short ways compute what RLlib's stock PPO computes: same advantages and targets, same loss, same actions.

With equal parts, our training step and RLlib's differ only in random numbers, so their learning curves are the same.
"""

from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from services.trainer.rl.batch import ADVANTAGES, GAME_TARGETS, BatchBuilder
from services.trainer.rl.learner import CURIOSITY, HYPER, CuriosityPPOLearner
from services.trainer.rl.module import ActorCriticModule
from shared.contracts.learning.ppo import PpoConfig
from tests.unit.trainer.corridor_env import ACTION, OBSERVATION

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own, on import and build

GAPS = (("terminated", 30), ("truncated", 20), ("cut", 25))


def learner(kind: type[Any], hyper: PpoConfig, lean: bool, curiosity: bool = False) -> Any:
    """A built learner with the same weights every time."""
    torch.manual_seed(0)
    config = PPOConfig().environment(observation_space=OBSERVATION, action_space=ACTION)
    config.training(
        lr=hyper.learning_rate,
        gamma=hyper.discount,
        lambda_=hyper.gae_lambda,
        clip_param=hyper.clip,
        vf_clip_param=hyper.value_clip,
        vf_loss_coeff=hyper.value_coefficient,
        entropy_coeff=hyper.entropy,
        use_kl_loss=False,
    )
    config.learners(
        learner_class=kind,
        add_default_connectors_to_learner_pipeline=not lean,
        learner_config_dict={HYPER: hyper, CURIOSITY: curiosity, "shape": (128,)} if lean else {},
    )
    config.rl_module(
        rl_module_spec=RLModuleSpec(
            ActorCriticModule,
            model_config={"hidden": [32, 32], "curiosity": hyper.curiosity_view if curiosity else None},
        )
    )
    return config.build_learner(spaces={"__env__": (OBSERVATION, ACTION), DEFAULT_MODULE_ID: (OBSERVATION, ACTION)})


def episodes() -> list[SingleAgentEpisode]:
    """One episode of each kind of ending, with random content."""
    rng = np.random.default_rng(1)
    made = []
    for ending, length in GAPS:
        actions = rng.integers(0, 8, length)
        logits = rng.normal(size=(length, 8)).astype(np.float32)
        log_softmax = torch.log_softmax(torch.from_numpy(logits), -1)
        logp = log_softmax.gather(-1, torch.from_numpy(actions)[:, None])[:, 0].numpy()
        episode = SingleAgentEpisode(
            observations=list(rng.uniform(-1, 1, (length + 1, 128)).astype(np.float32)),
            actions=list(actions),
            rewards=list(rng.normal(size=length)),
            terminated=ending == "terminated",
            truncated=ending == "truncated",
            extra_model_outputs={Columns.ACTION_LOGP: list(logp), Columns.ACTION_DIST_INPUTS: list(logits)},
            len_lookback_buffer=0,
            observation_space=OBSERVATION,
            action_space=ACTION,
        )
        made.append(episode.to_numpy())
    return made


class Unscaled(BatchBuilder):
    """The batch builder with rewards left as they are, because stock PPO does not scale them."""

    def __init__(self, hyper: PpoConfig) -> None:
        super().__init__(hyper, (128,), curiosity=False)
        self.streams.game.scaled = lambda chunks: [rewards for _, rewards, _ in chunks]  # type: ignore[method-assign]


def test_advantages_and_value_targets_are_those_of_stock_rllib() -> None:
    hyper = PpoConfig()
    stock = learner(PPOTorchLearner, hyper, lean=False)
    theirs = stock._learner_connector(
        rl_module=stock.module, batch={}, episodes=episodes(), shared_data={}, metrics=stock.metrics
    )[DEFAULT_MODULE_ID]
    mask = theirs[Columns.LOSS_MASK]
    ours = Unscaled(hyper)(rl_module=stock.module, episodes=episodes())[DEFAULT_MODULE_ID]
    torch.testing.assert_close(ours[Columns.OBS], theirs[Columns.OBS][mask])
    torch.testing.assert_close(ours[GAME_TARGETS], theirs["value_targets"][mask].float(), rtol=1e-4, atol=1e-4)
    # RLlib standardises before it drops its artificial extra steps, we after: compare both standardised alike.
    found, wanted = ours[ADVANTAGES], theirs["advantages"][mask].float()
    wanted = (wanted - wanted.mean()) / wanted.std(correction=0)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


def test_the_loss_and_its_gradient_are_those_of_stock_rllib() -> None:
    hyper = PpoConfig()
    stock, ours = learner(PPOTorchLearner, hyper, lean=False), learner(CuriosityPPOLearner, hyper, lean=True)
    weights = stock.module[DEFAULT_MODULE_ID].unwrapped().state_dict()
    ours.module[DEFAULT_MODULE_ID].unwrapped().load_state_dict(weights)
    batch = dict(Unscaled(hyper)(rl_module=stock.module, episodes=episodes())[DEFAULT_MODULE_ID])
    logits = stock.module[DEFAULT_MODULE_ID].unwrapped().pi(batch[Columns.OBS]).detach()
    batch[Columns.ACTION_DIST_INPUTS] = logits
    batch["value_targets"] = batch[GAME_TARGETS]
    losses = []
    for one in (stock, ours):
        module = one.module[DEFAULT_MODULE_ID].unwrapped()
        out = module._forward_train(batch)
        config = one.config.get_config_for_module(DEFAULT_MODULE_ID)
        loss = one.compute_loss_for_module(module_id=DEFAULT_MODULE_ID, config=config, batch=batch, fwd_out=out)
        loss.backward()
        losses.append((loss.detach(), [parameter.grad.clone() for parameter in module.parameters()]))
    torch.testing.assert_close(losses[0][0], losses[1][0], rtol=1e-5, atol=1e-6)
    change = (
        torch.log_softmax(logits, -1).gather(-1, batch[Columns.ACTIONS][:, None])[:, 0] - batch[Columns.ACTION_LOGP]
    )
    torch.testing.assert_close(ours.losses["kl"][0], (change.exp() - 1 - change).mean(), rtol=1e-4, atol=1e-6)
    for theirs, mine in zip(losses[0][1], losses[1][1], strict=True):
        torch.testing.assert_close(theirs, mine, rtol=1e-4, atol=1e-6)


def test_actions_are_sampled_from_the_softmax_with_their_log_probability() -> None:
    torch.manual_seed(3)
    module = learner(CuriosityPPOLearner, PpoConfig(), lean=True).module[DEFAULT_MODULE_ID].unwrapped()
    with torch.no_grad():
        module.pi[-1].weight.mul_(100.0)  # far from uniform
    draws = 40_000
    state = torch.rand(1, 128) * 2 - 1
    out = module._forward_exploration({Columns.OBS: state.expand(draws, -1)})
    wanted = torch.softmax(module.pi(state)[0], -1).detach()
    counted = torch.bincount(out[Columns.ACTIONS], minlength=8) / draws
    error = (wanted * (1 - wanted) / draws).sqrt()
    assert ((counted - wanted).abs() <= 5 * error + 1e-6).all(), (counted, wanted)
    torch.testing.assert_close(out[Columns.ACTION_LOGP], wanted.log()[out[Columns.ACTIONS]], rtol=1e-4, atol=1e-5)
    best = module._forward_inference({Columns.OBS: state})[Columns.ACTIONS]
    assert best.item() == wanted.argmax().item()
