"""The two algorithms that `bench/lean.py` compares: ours without reward scaling, and RLlib's stock PPO."""

from typing import Any

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from torch import Tensor

from services.trainer.env.spaces import action_space, observation_space
from services.trainer.rl.algorithm import build, rllib_values
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.module import HIDDEN, ActorCriticModule
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.runners import EpochPlanCallback, begin_epoch
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig
from shared.contracts.ids import RunId
from shared.contracts.learning.ppo import PpoConfig
from shared.contracts.run import RunConfig

# Rewards are not scaled here: a clip for scaled rewards would hide the game.
HYPER = PpoConfig()


class StockActorCriticModule(ActorCriticModule):
    """Our networks, but actions are drawn by RLlib's own connectors."""

    @torch.inference_mode()
    def _forward_exploration(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Tensor]:
        return {Columns.ACTION_DIST_INPUTS: self.pi(batch[Columns.OBS])}


def algorithm(kind: str, seed: int, envs: int, batch: int) -> Any:
    """A built algorithm of one kind that plays garden in this process."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    torch.set_num_threads(1)
    run = RunConfig(
        world="garden",
        seed=seed,
        rnd=False,
        env_runners=0,
        envs_per_runner=envs,
        batch_size=batch,
        episode_length=400,
        frame_skip=12,
        segment_steps=100,
    )
    config = TrainingSessionConfig(RunId("lean"), run, HYPER)
    return lean(config) if kind == "lean" else stock(config)


def lean(config: TrainingSessionConfig) -> Any:
    """Ours, as a session builds it."""
    built = build(config, RLlibVectorEnv, EpochPlanCallback)
    streams = built.learner_group._learner.builder.streams
    streams.game.scaled = lambda chunks: [rewards for _, rewards, _ in chunks]
    return built


def stock(config: TrainingSessionConfig) -> Any:
    """RLlib's connectors and learner, with the same numbers."""
    run = config.run
    algorithm = (
        PPOConfig()
        .environment(
            RLlibVectorEnv,
            env_config={SESSION_CONFIG: config},
            observation_space=observation_space("obs/v1"),
            action_space=action_space(),
        )
        .debugging(seed=run.seed, log_level="ERROR")
        .framework("torch")
        .env_runners(
            num_env_runners=0, num_envs_per_env_runner=run.envs_per_runner, gym_env_vectorize_mode="vector_entry_point"
        )
        .training(**rllib_values(run, HYPER))
        .learners(num_learners=0)
        .callbacks(EpochPlanCallback)
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=StockActorCriticModule, model_config={"hidden": list(HIDDEN), "curiosity": None}
            )
        )
    )
    return algorithm.build_algo()


def plan(built: Any) -> None:
    """The epoch that both play: nothing recorded, nothing shaped."""
    begin_epoch(built, EpochPlan(0))
