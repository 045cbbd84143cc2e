"""ZeldaVectorEnv: several games in one process, for learners that want batches.

The emulator releases the interpreter's lock, so a few threads step as fast as as many processes, without copying
observations between them. Autoreset is Gymnasium's NEXT_STEP: the step after an ending starts the next episode, its
action is ignored, its reward is 0. A `Rewarder` may add rewards that need all environments together.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, Final, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import EpisodeRecorder, GameSession
from services.trainer.env.spaces import action_space, observation_space
from shared.game.emulator.start import StartState
from shared.game.games.game import Game
from shared.game.observation import counters, layout

ALL_HELD_S: Final = 0.005  # pause while every environment waits for a model; without it they would spin

Step = tuple[np.ndarray, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class Rewarder(Protocol):
    """Adds rewards for all environments together; shaping by a reward model is one."""

    view: str
    """What it receives, also when the policy sees pixels: `counters/v1` or `obs/v1`."""

    def begin(self, observations: NDArray[np.float32]) -> None:
        """Begin an episode in every environment; `observations` is (N, D)."""
        ...

    def advance(
        self,
        observations: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        held: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """Return what to add, (N,). An environment that had ended shows its next episode's first observation.

        A `held` one made no step: nothing is added.
        """
        ...


class VectorRecorder(Protocol):
    """Records the games of one vector environment, which closes it in the end (recording.recorder.RunnerRecorder)."""

    def for_env(self, env: int) -> EpisodeRecorder:
        """The recorder of environment `env`."""
        ...

    def close(self) -> None:
        """Store what was recorded."""
        ...


class ZeldaVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` games. `config` is an EnvConfig or its fields as plain data."""

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        config: EnvConfig | dict[str, Any],
        rewarder: Rewarder | None = None,
        game: Game | None = None,
        recorder: VectorRecorder | None = None,
    ) -> None:
        self.config = config if isinstance(config, EnvConfig) else EnvConfig.of(config)
        self.num_envs = count = self.config.num_envs
        self.single_observation_space = observation_space(self.config.observation, guided=self.config.guided)
        self.single_action_space = action_space(self.config.options)
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)
        self._recorder = recorder
        recorders = [None if recorder is None else recorder.for_env(env) for env in range(count)]
        self.sessions = [GameSession(self.config, env, recorders[env], game) for env in range(count)]
        self.rewarder = rewarder
        self._parts = [range(thread, count, self.config.threads) for thread in range(min(self.config.threads, count))]
        self._pool = ThreadPoolExecutor(len(self._parts), "env") if len(self._parts) > 1 else None
        self.features = np.zeros((count, layout.SIZE), np.float32)
        single = self.single_observation_space
        self._observations: np.ndarray = np.zeros((count, *single.shape), single.dtype)
        self._ended = np.zeros(count, np.bool_)
        self.held = np.zeros(count, np.bool_)
        self.died = np.zeros(count, np.bool_)
        self._packed_counters, self._counters = b"", np.zeros((count, counters.SIZE), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode in every environment. A `seed` restarts the numbering of episodes under it."""
        super().reset(seed=seed)
        if seed is not None:
            for session in self.sessions:
                session.reseed(seed)
        self._run_parts(self._reset_part)
        self._ended[:] = False
        if self.rewarder is not None:
            self.rewarder.begin(self._seen_by(self.rewarder))
        return self._observations.copy(), {}

    def step(self, actions: np.ndarray) -> Step:
        """Step every environment. `infos["report"]` holds reports of ended episodes, masked by `infos["_report"]`.

        Afterwards `died` marks environments whose hero has just died, whether or not this ends the episode, and `held`
        those that stood still: same observation, reward 0, to be left out.
        """
        self._actions: list[int] = np.asarray(actions).tolist()
        self._rewards = np.zeros(self.num_envs)
        self._terminated = np.zeros(self.num_envs, np.bool_)
        self._truncated = np.zeros(self.num_envs, np.bool_)
        self._reports: dict[int, dict[str, Any]] = {}
        self.held = np.zeros(self.num_envs, np.bool_)
        self.died = np.zeros(self.num_envs, np.bool_)
        self._run_parts(self._step_part)
        if self.held.all():
            time.sleep(ALL_HELD_S)
        if self.rewarder is not None:
            seen = self._seen_by(self.rewarder)
            self._rewards += self.rewarder.advance(seen, self._terminated | self.died, self._truncated, self.held)
        self._ended = self._terminated | self._truncated
        return self._observations.copy(), self._rewards, self._terminated, self._truncated, self._infos()

    def set_starts(self, starts: Sequence[StartState]) -> None:
        """Set where episodes begin from their next reset on. An empty sequence means the game's true start."""
        for session in self.sessions:
            session.set_starts(starts)

    def close_extras(self, **kwargs: Any) -> None:
        """End threads, emulators and the recording."""
        if self._pool is not None:
            self._pool.shutdown()
        for session in self.sessions:
            session.close()
        if self._recorder is not None:
            self._recorder.close()

    def _run_parts(self, work: Callable[[range], None]) -> None:
        if self._pool is None:
            for part in self._parts:
                work(part)
            return
        for future in [self._pool.submit(work, part) for part in self._parts]:
            future.result()

    def _seen_by(self, rewarder: Rewarder) -> NDArray[np.float32]:
        """The inputs of the rewarder's view, (N, D). Counters rarely change from one step to the next."""
        if rewarder.view == layout.VERSION:
            return self.features
        packed = b"".join(session.counters.packed for session in self.sessions)
        if packed != self._packed_counters:
            self._packed_counters = packed
            self._counters = counters.features(np.frombuffer(packed, "<u2").reshape(self.num_envs, counters.SIZE))
        return self._counters

    def _reset_part(self, part: range) -> None:
        for env in part:
            self._observations[env] = self.sessions[env].reset()
            self.features[env] = self.sessions[env].features

    def _step_part(self, part: range) -> None:
        sessions, observations, features = self.sessions, self._observations, self.features
        for env in part:
            session = sessions[env]
            if self._ended[env]:
                observations[env] = session.reset()
            elif session.holds():
                self.held[env] = True
                if session.guide is not None:  # the answer that it waited for is shown before it acts
                    observations[env] = session.observed()
            else:
                result = session.step(self._actions[env])
                observations[env] = result.observation
                if result.reward:
                    self._rewards[env] = result.reward
                self.died[env] = result.died
                if result.report is not None:
                    self._terminated[env], self._truncated[env] = result.terminated, result.truncated
                    self._reports[env] = asdict(result.report)
            features[env] = session.features

    def _infos(self) -> dict[str, Any]:
        if not self._reports:
            return {}
        reports = np.full(self.num_envs, None, dtype=object)
        for env, report in self._reports.items():
            reports[env] = report
        return {"report": reports, "_report": np.isin(np.arange(self.num_envs), list(self._reports))}
