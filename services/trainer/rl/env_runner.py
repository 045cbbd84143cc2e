"""BatchedEnvRunner: samples a vector environment into arrays, and cuts them into RLlib's episode chunks at the end.

RLlib's runner handles every environment of every step in Python: episode objects, callbacks, connector pipelines. On a
light game that costs as much as the game. This one keeps one array a step for all environments together.
"""

import uuid
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES
from ray.rllib.env.env_runner import ENV_STEP_FAILURE
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer

from services.trainer.rl.networks.pixel_observation import as_network_input
from services.trainer.rl.networks.policy_network import MEMORY, first_memory, forgotten

ACTED = "acted"
"""Column of a chunk: whether the policy's action was the one executed. Absent without a planner."""

HELD = "held"
"""Attribute of an environment: which of its games stood still in the last step, waiting for a model."""

DIED = "died"
"""Attribute of an environment: in which of its games the hero died in the last step. There the returns end, as in Mnih
et al. 2015, https://doi.org/10.1038/nature14236, even if the episode goes on."""

Cut = Literal["terminated", "truncated", "held", "died"]
Mask = NDArray[np.bool_]


class Rollout:
    """What N environments did in one call of `sample`: one array a step and column."""

    def __init__(self, observations: NDArray[Any], ended: Mask, names: list[str]) -> None:
        """`ended` (N,) marks environments whose next step only resets them; `names` are the open episodes' ids."""
        self.observations, self.ended, self.names = [observations], ended, names
        self.columns: dict[str, list[NDArray[Any]]] = {"actions": [], "logp": [], "rewards": []}
        self.steps = 0
        self._cuts: list[tuple[int, int, Cut]] = []  # step, environment, what cut its episode there
        self._begins = ended.astype(int).tolist()  # step at which each open chunk begins

    def add(
        self,
        actions: NDArray[Any],
        logp: NDArray[Any],
        results: tuple[Any, ...],
        acted: Mask | None = None,
        held: Mask | None = None,
        memory: NDArray[Any] | None = None,
        died: Mask | None = None,
    ) -> None:
        """Add a vector step; `memory` (N, M) is the policy's before it. An environment that had ended was reset by it,
        which counts as no step.

        A `held` one stood still, which counts as no step either: its chunk is cut there and continues after it.
        """
        observations, rewards, terminated, truncated, _ = results
        if acted is not None:
            self.columns.setdefault(ACTED, []).append(acted)
        if memory is not None:
            self.columns.setdefault(MEMORY, []).append(memory)
        for name, column in (("actions", actions), ("logp", logp), ("rewards", rewards)):
            self.columns[name].append(column)
        self.observations.append(observations)
        self.steps += len(actions) - int(np.count_nonzero(self.ended))
        self.ended = terminated | truncated
        step = len(self.observations) - 2
        if self.ended.any():
            kinds: tuple[Cut, Cut] = ("truncated", "terminated")
            final = terminated if died is None else terminated | died  # returns end at a death, even if truncated
            self._cuts += [(step, int(env), kinds[int(final[env])]) for env in np.flatnonzero(self.ended)]
        if died is not None:
            self._cuts += [(step, int(env), "died") for env in np.flatnonzero(died & ~self.ended)]
        if held is not None and held.any():
            self.steps -= int(np.count_nonzero(held))
            self._cuts += [(step, int(env), "held") for env in np.flatnonzero(held)]

    def chunks(self) -> list[SingleAgentEpisode]:
        """Chunks in the order of their ends, then those of the open episodes."""
        length = len(self.observations) - 1
        by_env = {name: np.stack(column, axis=1) for name, column in self.columns.items()}
        observations = np.stack(self.observations, axis=1)
        found = []
        for step, env, cut in self._cuts:
            if cut == "held":
                if self._begins[env] < step:
                    found.append(self._chunk(observations, by_env, env, step))
                self._begins[env] = step + 1
                continue
            found.append(self._chunk(observations, by_env, env, step + 1))
            found[-1].is_terminated, found[-1].is_truncated = cut != "truncated", cut == "truncated"
            # The step after an end only resets the environment; the one after a death is played.
            self._begins[env], self.names[env] = step + 1 + (cut != "died"), uuid.uuid4().hex
        open_ = [env for env, begin in enumerate(self._begins) if begin < length]
        return found + [self._chunk(observations, by_env, env, length) for env in open_]

    def _chunk(
        self, observations: NDArray[Any], by_env: dict[str, NDArray[Any]], env: int, end: int
    ) -> SingleAgentEpisode:
        begin = self._begins[env]
        column = {name: InfiniteLookbackBuffer(values[env, begin:end]) for name, values in by_env.items()}
        return SingleAgentEpisode(
            id_=self.names[env],
            observations=InfiniteLookbackBuffer(observations[env, begin : end + 1]),
            infos=InfiniteLookbackBuffer([{}] * (end + 1 - begin)),
            actions=column["actions"],
            rewards=column["rewards"],
            extra_model_outputs={
                Columns.ACTION_LOGP: column["logp"],
                **{name: column[name] for name in (ACTED, MEMORY) if name in column},
            },
            len_lookback_buffer=0,
        )


class BatchedEnvRunner(SingleAgentEnvRunner):
    """RLlib's runner with another inner loop. Environments reset themselves in the step after an end (NEXT_STEP)."""

    _rollout: Rollout
    _memory: torch.Tensor
    _needs_initial_reset: bool

    def get_spaces(self) -> Any:
        """RLlib's spaces; the policy sees what the environment shows, because no connector is between them."""
        spaces = super().get_spaces()
        return spaces if self.env is None else spaces | {DEFAULT_MODULE_ID: spaces[INPUT_ENV_SINGLE_SPACES]}

    def _sample(
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool,
        random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[SingleAgentEpisode]:
        """Play at least `num_timesteps` steps with the policy and return the chunks of their episodes.

        A step that fails discards what this call has sampled: the environment is rebuilt, and sampling starts again.
        """
        if num_timesteps is None or random_actions or not explore:
            raise ValueError("this runner samples steps of the exploring policy: neither episodes nor random actions")
        if force_reset or self._needs_initial_reset:
            self._begin()
        while self._rollout.steps < num_timesteps:
            if not self._step():
                self._begin()
        rollout = self._rollout
        chunks = rollout.chunks()
        self._rollout = Rollout(rollout.observations[-1], rollout.ended, rollout.names)  # frees the columns
        self._log_env_steps(metric=self._metrics_num_env_steps_sampled, num_steps=rollout.steps)
        self._increase_sampled_metrics(rollout.steps, sum(chunk.is_done for chunk in chunks))
        return chunks

    def _begin(self) -> None:
        """Begin an episode in every environment."""
        observations, _ = self._try_env_reset(seed=self._seed if self._needs_initial_reset else None)
        self._needs_initial_reset = False
        names = [uuid.uuid4().hex for _ in range(self.num_envs)]
        self._rollout = Rollout(observations, np.zeros(self.num_envs, np.bool_), names)
        self._memory = first_memory(self.module.pi, self.num_envs)

    def _step(self) -> bool:
        """Make a step of all environments; False if it failed and RLlib has rebuilt them."""
        inputs = torch.from_numpy(as_network_input(self._rollout.observations[-1]))
        # Not `forward_exploration`: it switches all layers to evaluation mode first, which takes as long as the rest.
        memory, ended = self._memory, self._rollout.ended
        outputs = self.module._forward_exploration({Columns.OBS: inputs, MEMORY: memory})
        actions = outputs[Columns.ACTIONS].numpy()
        results = self._try_env_step(actions)
        if results == ENV_STEP_FAILURE:
            return False
        acted, held, died = (getattr(self.env.unwrapped, name, None) for name in (ACTED, HELD, DIED))
        remembered = memory.numpy() if self.module.pi.memory_size else None
        self._rollout.add(actions, outputs[Columns.ACTION_LOGP].numpy(), results, acted, held, remembered, died)
        if remembered is not None:
            self._memory = forgotten(outputs[MEMORY], ended)
        return True
