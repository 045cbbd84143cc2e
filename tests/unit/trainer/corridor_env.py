"""A corridor as a vector environment: the smallest world that shows whether the learner learns."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from services.trainer.domain.epoch_metrics import EpisodeSummary
from services.trainer.driver.session import TrainingSession
from services.trainer.rl.epoch_plan import EpochPlan, RolloutResult
from services.trainer.rl.session_config import TrainingSessionConfig
from shared.contracts.ids import RunId
from shared.contracts.learning.ppo import PpoConfig
from shared.contracts.run import MemoryName, RunConfig

OBSERVATION = gym.spaces.Box(-1, 1, (128,), np.float32)
ACTION: gym.spaces.Space[Any] = gym.spaces.Discrete(8)
LENGTH, LIMIT = 20, 100


class Corridor(VectorEnv):  # type: ignore[type-arg]
    """Action 3 walks right, action 2 left, the rest stand still; the right end pays 10 and ends the episode."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, config: Any) -> None:
        self.num_envs = config["num_envs"]
        self.runner = getattr(config, "worker_index", 0)
        self.single_observation_space, self.single_action_space = OBSERVATION, ACTION
        self.observation_space = batch_space(OBSERVATION, self.num_envs)
        self.action_space = batch_space(ACTION, self.num_envs)
        self.plan = EpochPlan(0)
        self.position = np.zeros(self.num_envs, int)
        self.time = np.zeros(self.num_envs, int)
        self.ended = np.zeros(self.num_envs, bool)
        self.number = np.zeros(self.num_envs, int)
        self.summaries: list[EpisodeSummary] = []

    def begin_epoch(self, plan: EpochPlan) -> None:
        self.plan = plan
        self.number[:] = [plan.first_episode(f"{self.runner}/{env}") - 1 for env in range(self.num_envs)]

    def collect(self, *, final: bool) -> RolloutResult:
        found, self.summaries = self.summaries, []
        numbers = {f"{self.runner}/{env}": int(number) for env, number in enumerate(self.number)}
        return RolloutResult(self.runner, found, next_episodes=numbers)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._restart(np.ones(self.num_envs, bool))
        return self._observations(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        fresh = self.ended.copy()
        self._restart(fresh)
        move = np.where(fresh, 0, np.where(actions == 3, 1, np.where(actions == 2, -1, 0)))
        self.position = np.clip(self.position + move, 0, LENGTH)
        self.time += ~fresh
        won = (self.position == LENGTH) & ~fresh
        late = (self.time >= LIMIT) & ~won & ~fresh
        self.ended = won | late
        for env in np.flatnonzero(self.ended):
            facts = {"milestones": float(self.position[env] / LENGTH)}
            name = f"e{self.plan.epoch:04d}-r{self.runner:02d}-v{env:02d}-{self.number[env]:04d}"
            self.summaries.append(EpisodeSummary(name, int(self.time[env]), 10.0 * won[env], {}, facts))
        return self._observations(), np.where(won, 10.0, -0.01) * ~fresh, won, late, {}

    def _restart(self, which: Any) -> None:
        self.position[which] = 0
        self.time[which] = 0
        self.number[which] += 1

    def _observations(self) -> Any:
        seen = np.zeros((self.num_envs, 128), np.float32)
        seen[np.arange(self.num_envs), self.position] = 1.0
        return seen


HYPER = PpoConfig(curiosity_view="novelty/v1", curiosity=0.5)  # a corridor has no cells of a game


def corridor_session(
    runners: int = 0,
    envs: int = 8,
    batch: int = 1024,
    curiosity: bool = True,
    seed: int = 1,
    env: type = Corridor,
    learners: int = 1,
    hyper: PpoConfig = HYPER,
    memory: MemoryName = "none",
) -> TrainingSession:
    run = RunConfig(
        env_runners=runners,
        envs_per_runner=envs,
        batch_size=batch,
        rnd=curiosity,
        seed=seed,
        observation="obs/v1",  # as wide as the corridor's
        learners=learners,
        memory=memory,
        ppo=hyper,
    )
    return TrainingSession(TrainingSessionConfig(RunId("corridor"), run, run.ppo), env)
