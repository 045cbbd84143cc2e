"""CPU seconds of one batch in the learner: building it, its gradient steps, and those on one of several shares."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from services.trainer.env.spaces import action_space, observation_space
from services.trainer.rl.algorithm import configured
from services.trainer.rl.batch import ADVANTAGES, minibatch_rows, select
from services.trainer.rl.env_runner import Rollout
from services.trainer.rl.learner import CuriosityPPOLearner
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import TrainingSessionConfig
from services.trainer.settings import DriverGroup
from shared.contracts.ids import RunId
from shared.contracts.learning.ppo import PpoConfig
from shared.contracts.run import RunConfig

STEPS_PER_ENV = 128
REFERENCE = 4_096


@dataclass(frozen=True)
class LearnerCost:
    """One batch: its minibatch, CPU seconds of both parts, and the gradients' size in bytes.

    `share_s` are the CPU seconds of all gradient steps on the share of one of `learners`. It is more than
    `gradients_s / learners`, because a step has costs that its rows do not change.
    """

    batch: int
    minibatch: int
    building_s: float
    gradients_s: float
    learners: int
    share_s: float
    gradient_bytes: int

    def row(self) -> str:
        """The row of the table."""
        alone, shared = (self.batch / (self.building_s + part) for part in (self.gradients_s, self.share_s))
        return (
            f"| {self.batch:,} | {self.minibatch:,} | {self.building_s:.2f} s | {self.gradients_s:.2f} s "
            f"| {alone:,.0f} | {self.learners} | {self.share_s:.2f} s | {shared:,.0f} |"
        )


def measured(batch: int, learners: int) -> LearnerCost:
    """Learn one batch of random observations, with the defaults of a run and minibatches for the batch; then make the
    same number of steps on the share of one of so many learners."""
    run = RunConfig(
        env_runners=0, batch_size=batch, epoch_steps=max(300_000, batch), ppo=PpoConfig(reference_batch=REFERENCE)
    )
    config = TrainingSessionConfig.of(RunId("bench"), run, DriverGroup(), None)
    torch.set_num_threads(1)
    learner = learner_of(config)
    chunks = play(batch, run)
    began = time.process_time()
    columns = learner.builder(rl_module=learner.module, episodes=chunks)[DEFAULT_MODULE_ID]
    built = time.process_time()
    size, epochs = config.ppo.minibatch_of(batch), config.ppo.epochs
    minibatches = list(minibatch_rows(len(columns[ADVANTAGES]), size=size, epochs=epochs, shuffle=True))
    drawn = time.process_time()
    for rows in minibatches:
        learner._update({DEFAULT_MODULE_ID: select(columns, rows)})
    learnt = time.process_time()
    for rows in minibatches:
        learner._update({DEFAULT_MODULE_ID: select(columns, rows[::learners])})
    shared = time.process_time()
    parameters = sum(p.numel() * p.element_size() for p in learner._params.values() if p.requires_grad)
    return LearnerCost(batch, size, built - began, learnt - drawn, learners, shared - learnt, parameters)


def learner_of(config: TrainingSessionConfig) -> CuriosityPPOLearner:
    """The learner of a session, alone."""
    space = observation_space(config.run.observation), action_space()
    made = configured(config, RLlibVectorEnv).build_learner(spaces={"__env__": space, DEFAULT_MODULE_ID: space})
    if not isinstance(made, CuriosityPPOLearner):
        raise TypeError(f"the configuration builds {type(made).__name__}")
    return made


def play(batch: int, run: RunConfig) -> list[Any]:
    """Random observations, actions and rewards of as many environments as fill the batch."""
    rng, envs = np.random.default_rng(0), batch // STEPS_PER_ENV
    shape = (envs, *observation_space(run.observation).shape)
    running = np.zeros(envs, np.bool_)
    rollout = Rollout(rng.random(shape, np.float32), running, [str(env) for env in range(envs)])
    for _ in range(STEPS_PER_ENV):
        logp = np.full(envs, -np.log(8), np.float32)
        results: tuple[Any, ...] = rng.random(shape, np.float32), rng.random(envs, np.float32), running, running, {}
        rollout.add(rng.integers(0, 8, envs), logp, results)
    return list(rollout.chunks())
