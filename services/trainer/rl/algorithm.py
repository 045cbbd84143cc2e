"""Builds the RLlib algorithm from a TrainingSessionConfig. Only this module names fields of RLlib's configuration."""

from typing import Any

from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from services.trainer.env.spaces import action_space, observation_space
from services.trainer.rl.env_runner import BatchedEnvRunner
from services.trainer.rl.learner import CURIOSITY, DEVICE, HYPER, OPTIONS, CuriosityPPOLearner
from services.trainer.rl.module import HIDDEN, ActorCriticModule
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig
from shared.contracts.learning.ppo import PpoConfig
from shared.contracts.run import RunConfig

SAMPLE_TIMEOUT_S = 600.0
"""RLlib silently drops the share of a runner that needs longer for it. Its default of 60 s is too short for large
batches at frame_skip 24."""

RESTART_PAUSE_S = 5.0
"""A runner that raised waits this long before its restart, and all others wait with it; RLlib's default is a minute.
With a much shorter pause, a game that fails immediately would keep the machine busy with restarts."""


def build(config: TrainingSessionConfig, env: type, callbacks: Any | None = None) -> PPO:
    """Build the algorithm. `env` is called with RLlib's `env_config` and returns a vector environment."""
    algorithm = configured(config, env)
    if callbacks is not None:
        algorithm.callbacks(callbacks)
    return algorithm.build_algo()


def configured(config: TrainingSessionConfig, env: type) -> PPOConfig:
    """RLlib's configuration of the algorithm, without callbacks."""
    run = config.run
    space = observation_space(run.observation, guided=run.guidance.enabled)
    algorithm = (
        PPOConfig()
        .environment(
            env, env_config={SESSION_CONFIG: config}, observation_space=space, action_space=action_space(run.options)
        )
        .debugging(seed=run.seed, log_level="ERROR")
        .framework("torch")
    )
    _sampling(algorithm, run)
    _learning(algorithm, run, config.ppo, space.shape, config.learner_device)
    return algorithm


def _sampling(algorithm: PPOConfig, run: RunConfig) -> None:
    """Configure our vectorised env runners, which need no connectors; RLlib restarts failed ones."""
    algorithm.env_runners(
        env_runner_cls=BatchedEnvRunner,
        num_env_runners=run.env_runners,
        num_envs_per_env_runner=run.envs_per_runner,
        rollout_fragment_length="auto",
        gym_env_vectorize_mode="vector_entry_point",
        add_default_connectors_to_env_to_module_pipeline=False,
        add_default_connectors_to_module_to_env_pipeline=False,
        sample_timeout_s=SAMPLE_TIMEOUT_S,
    )
    algorithm.fault_tolerance(
        restart_failed_env_runners=True,
        restart_failed_sub_environments=True,
        delay_between_env_runner_restarts_s=RESTART_PAUSE_S,
    )


def rllib_values(run: RunConfig, hyper: PpoConfig) -> dict[str, Any]:
    """The run's values of PPO under RLlib's names, for `PPOConfig.training`."""
    return {
        "train_batch_size": run.batch_size,
        "minibatch_size": hyper.minibatch_of(run.batch_size),
        "num_epochs": hyper.epochs,
        "lr": hyper.learning_rate,
        "gamma": hyper.discount,
        "lambda_": hyper.gae_lambda,
        "clip_param": hyper.clip,
        "vf_clip_param": hyper.value_clip,
        "vf_loss_coeff": hyper.value_coefficient,
        "entropy_coeff": hyper.entropy,
        "grad_clip": hyper.gradient_norm,
        "use_kl_loss": False,
    }


def _learning(algorithm: PPOConfig, run: RunConfig, hyper: PpoConfig, shape: tuple[int, ...], device: str) -> None:
    """Configure our module and learner. The learner ignores RLlib's own loss settings; they are set to equal values."""
    algorithm.training(**rllib_values(run, hyper))
    algorithm.learners(
        num_learners=0,
        learner_class=CuriosityPPOLearner,
        add_default_connectors_to_learner_pipeline=False,
        learner_config_dict={
            HYPER: hyper,
            CURIOSITY: run.rnd,
            DEVICE: device,
            "shape": shape,
            OPTIONS: run.options != "none",
        },
    )
    algorithm.rl_module(
        rl_module_spec=RLModuleSpec(
            module_class=ActorCriticModule,
            model_config={
                "hidden": list(HIDDEN),
                "memory": run.memory != "none",
                "curiosity": hyper.curiosity_view if run.rnd else None,
            },
        )
    )
