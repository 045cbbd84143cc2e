"""The jobs of `bench/train.py`: what each measured layer of training does in one turn, in steps per second."""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, SupportsInt

import gymnasium
import numpy as np
import torch
from ray.rllib.execution.rollout_ops import synchronous_parallel_sample

from bench.harness.games import GAMES
from bench.harness.measure import interleave
from bench.load_rom import load_game
from services.trainer.driver.session import TrainingSession
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.env.spaces import action_space, observation_space
from services.trainer.env.vector import ZeldaVectorEnv
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.module import HIDDEN
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import TrainingSessionConfig
from shared import rewardnet
from shared.config.settings import StoreSettings
from shared.contracts.base import sha256
from shared.contracts.ids import RunId
from shared.contracts.learning.ppo import PpoConfig
from shared.contracts.run import RunConfig, SamplingConfig
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import true_start
from shared.game.games.game import Game
from shared.game.observation import counters

CORES = 2
ENVS = 16  # per runner; the peer gets as many processes
BATCH = 4_096
SKIP = 4
LONG_SKIP = 24
ACTIONS = 7  # without START, which opens the menu and then measures a menu
TURN = 3  # batches
POLL_S = 0.01
EVERY = SamplingConfig(share=1.0, budget=100_000)
HYPER = PpoConfig(learning_rate=1e-12)
TITLE = f"Training, frame_skip {SKIP}, {CORES}x{ENVS} environments, batch {BATCH}"


class BenchVector(RLlibVectorEnv):
    """RLlibVectorEnv that reports how many segments are on their way to the store."""

    def pending(self) -> int:
        """Segments that are not in the store yet."""
        return 0 if self._recorder is None else self._recorder.pending


class LoadVector(BenchVector):
    """The same on the load ROM."""

    def open_game(self, config: EnvConfig) -> Game:
        """The load ROM in place of the run's game."""
        return load_game()


def tick(name: str, skip: int, seconds: float) -> float:
    """One process: the emulator with random buttons; steps per second."""
    game = GAMES[name]()
    emulator = Emulator(game)
    emulator.load(true_start(game).state)
    actions = np.random.default_rng(0).integers(0, ACTIONS, 100_000).tolist()
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(100):
            emulator.step(actions[done % len(actions)], skip)
            done += 1
    return done / (time.perf_counter() - began)


def play(name: str, skip: int, seconds: float) -> float:
    """One process: the vector environment with random actions; steps per second."""
    env = ZeldaVectorEnv(EnvConfig(num_envs=ENVS, frame_skip=skip, episode_length=500), game=GAMES[name]())
    env.reset()
    rng = np.random.default_rng(0)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        env.step(rng.integers(0, ACTIONS, ENVS))
        done += ENVS
    return done / (time.perf_counter() - began)


def on_all_cores(job: Callable[[str, int, float], float], name: str, skip: int, seconds: float) -> Callable[[], float]:
    """`job` in one process a core at the same time; the sum of what each returned."""

    def run() -> float:
        with ProcessPoolExecutor(CORES) as pool:
            return sum(pool.map(partial(job, name, skip), [seconds] * CORES))

    return run


def session(
    name: str, store: StoreSettings | None, sampling: SamplingConfig | None = None, skip: int = SKIP
) -> TrainingSession:
    """A session with one runner a core. With a store it also records and shapes, as an epoch of a run does."""
    config = RunConfig(
        world="vale",
        frame_skip=skip,
        env_runners=CORES,
        envs_per_runner=ENVS,
        batch_size=BATCH,
        episode_length=500,
        rnd=False,
        sampling=sampling or SamplingConfig(),
    )
    vector = LoadVector if name == "cpu_bound" else BenchVector
    made = TrainingSession(TrainingSessionConfig(RunId("bench"), config, HYPER, store), vector)
    weights = reward_model() if store is not None else None
    digest = sha256(weights) if weights is not None else None
    made.begin(lambda numbers: EpochPlan(0, reward_model=weights, reward_model_digest=digest), 0)
    return made


def reward_model() -> bytes:
    """An untrained ensemble of five that reads what trained ones read, standardised: it costs what they do."""
    states = np.random.default_rng(0).uniform(-1, 1, (256, rewardnet.WIDTHS[counters.VERSION])).astype(np.float32)
    bare = rewardnet.random_weights(5, 0, counters.VERSION)
    return rewardnet.dump(rewardnet.standardise(bare, states))


def trained(one: TrainingSession, batches: int = TURN) -> Callable[[], float]:
    """A turn of batches sampled and learnt, and everything recorded in the store; steps per second."""
    group = one.algorithm.env_runner_group

    def run() -> float:
        began, steps = time.perf_counter(), one.lifetime_steps
        for _ in range(batches):
            one.iterate()
        while sum(group.foreach_env_runner(lambda runner: runner.env.unwrapped.pending(), local_env_runner=False)):
            time.sleep(POLL_S)
        return (one.lifetime_steps - steps) / (time.perf_counter() - began)

    return run


def sampled(one: TrainingSession) -> Callable[[], float]:
    """One batch sampled through RLlib and thrown away; steps per second."""

    def run() -> float:
        began = time.perf_counter()
        episodes = synchronous_parallel_sample(
            worker_set=one.algorithm.env_runner_group, max_env_steps=BATCH, _uses_new_env_runners=True
        )
        return float(sum(map(len, episodes))) / (time.perf_counter() - began)

    return run


class PeerEnv(gymnasium.Env[np.ndarray, SupportsInt]):
    """One environment for the peer, on the game of the given name."""

    def __init__(self, name: str, number: int) -> None:
        config = EnvConfig(frame_skip=SKIP, episode_length=500, runner=number)
        self.observation_space = observation_space(config.observation)
        self.action_space = action_space()
        self._session = GameSession(config, game=GAMES[name]())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin the next episode. A `seed` restarts the numbering of episodes under it."""
        super().reset(seed=seed)
        if seed is not None:
            self._session.reseed(seed)
        return self._session.reset().copy(), {}

    def step(self, action: SupportsInt) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Make one step."""
        made = self._session.step(int(action))
        return made.observation.copy(), made.reward, made.terminated, made.truncated, {}

    def close(self) -> None:
        """End the emulator."""
        self._session.close()


def peer(name: str) -> tuple[Callable[[], float], Callable[[], None]]:
    """stable-baselines3's PPO with the same batch, minibatch, epochs and networks; a job and how to end it."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import SubprocVecEnv

    env = SubprocVecEnv([partial(PeerEnv, name, number) for number in range(ENVS)], start_method="forkserver")
    layers = list(HIDDEN)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=BATCH // ENVS,
        batch_size=HYPER.minibatch,
        n_epochs=HYPER.epochs,
        learning_rate=HYPER.learning_rate,
        gamma=HYPER.discount,
        ent_coef=HYPER.entropy,
        policy_kwargs={
            "net_arch": {"pi": layers, "vf": layers},
            "activation_fn": torch.nn.Tanh,
        },
        device="cpu",
    )

    def run() -> float:
        began = time.perf_counter()
        model.learn(TURN * BATCH, reset_num_timesteps=False)
        return TURN * BATCH / (time.perf_counter() - began)

    return run, env.close


def recording_jobs(name: str, folder: str, ending: ExitStack) -> dict[str, Callable[[], float]]:
    """Training without recording, with the default sampling, and with every segment. `ending` closes them."""
    run_store, every_store = (StoreSettings(url=f"file://{folder}/{name}-{kind}") for kind in ("run", "every"))
    sessions = session(name, None), session(name, run_store), session(name, every_store, EVERY)
    for one in sessions:
        ending.callback(close, one)
    plain, run, every = sessions
    return {
        "sample": sampled(plain),
        "train": trained(plain),
        "train_recording": trained(run),
        "train_recording_all": trained(every),
    }


def other_jobs(name: str, seconds: float, ending: ExitStack) -> dict[str, Callable[[], float]]:
    """The emulator, the environment and the peer. `ending` closes them."""
    peer_job, peer_end = peer(name)
    ending.callback(peer_end)
    return {
        "raw": on_all_cores(tick, name, SKIP, seconds),
        "env": on_all_cores(play, name, SKIP, seconds),
        "stable_baselines3": peer_job,
    }


def long_jobs(name: str, seconds: float, ending: ExitStack) -> dict[str, Callable[[], float]]:
    """The emulator and training at frame_skip 24. `ending` closes them."""
    one = session(name, None, skip=LONG_SKIP)
    ending.callback(close, one)
    return {"raw_24": on_all_cores(tick, name, LONG_SKIP, seconds), "train_24": trained(one, 1)}


def measure(name: str, rounds: int, folder: str, only_recording: bool = False) -> dict[str, list[float]]:
    """All rates of one game, by key."""
    with ExitStack() as ending:
        jobs = recording_jobs(name, folder, ending)
        if not only_recording:
            seconds = 2.0 if rounds > 2 else 1.0
            jobs |= other_jobs(name, seconds, ending) | long_jobs(name, seconds, ending)
        return interleave(jobs, rounds)


def close(one: TrainingSession) -> None:
    """End a session after its last segment is stored."""
    one.collect(final=True)
    one.close()
