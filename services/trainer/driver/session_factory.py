"""From a run's configuration to a session and an evaluation of the real game. The place where Ray is started."""

from typing import Any

import ray

from services.trainer.driver.evaluation import Evaluation
from services.trainer.driver.session import GameSpec, SessionSpec, TrainingSession
from services.trainer.env.curriculum_starts import starts_for
from services.trainer.env.env import action_space, observation_space
from services.trainer.env.rewards import RewardProfile
from services.trainer.games import GAMES
from services.trainer.rl.hyperparameters import Hyperparameters
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.settings import DriverGroup
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.errors import Permanent
from shared.game.emulator.start import true_start
from shared.game.games.registry import GameRequest

EVALUATION_RUNNER = 9_000  # index that no env runner has, so that evaluation has dice of its own
OWN_CORES = 2  # threads that step the games when the driver samples itself; the emulator frees the interpreter's lock


class UnplayableRun(Permanent):
    """No driver can play this run with what it was given."""


def play_config(
    run: RunId,
    config: RunConfig,
    hyper: Hyperparameters,
    store: StoreSettings | None,
    driver: DriverGroup | None = None,
    runner: int = 0,
) -> dict[str, Any]:
    """What RLlibVectorEnv needs, as plain data for Ray. Without a store nothing is recorded.

    `driver` names the user's own files; they must lie at the same place on every machine that plays.
    """
    rom, start_state = (driver.rom, driver.start_state) if driver is not None else (None, None)
    return {
        "run": str(run),
        "run_config": config.model_dump(mode="json"),
        "discount": hyper.discount,
        "store": store.model_dump(mode="json") if store is not None else None,
        "rom": str(rom) if rom else None,
        "start_state": str(start_state) if start_state else None,
        "runner": runner,
        # Bramble's steps are so short that handing them to threads costs what it gains (bench/env.py).
        "threads": OWN_CORES if config.env_runners == 0 and config.game != "bramble" else 1,
    }


def check_playable(config: RunConfig, driver: DriverGroup) -> None:
    """Raise UnplayableRun if something that the run or the settings name is missing or does not fit.

    In an env runner the same would only look like a game that fails, and be tried again.
    """
    try:
        request = GameRequest(config.world, config.difficulty, config.seed, rom=driver.rom, start=driver.start_state)
        game = GAMES.open(config.game, request)
        if config.game != "bramble":  # which brings a start that is known to be good
            true_start(game)
        RewardProfile.load(config.rewards)
        if driver.curriculum:
            starts_for(game, config, driver.curriculum)
    except Permanent as error:
        raise UnplayableRun(str(error)) from error


def create_session(run: RunId, config: RunConfig, driver: DriverGroup, store: StoreSettings | None) -> TrainingSession:
    """A new session that plays the run's game. Starts Ray, or joins the cluster that the settings name.

    Raises UnplayableRun before that if there is nothing to play.
    """
    check_playable(config, driver)
    start_ray(config.env_runners, driver)
    hyper = hyper_of(driver)
    game = GameSpec(
        env=RLlibVectorEnv,
        env_config=play_config(run, config, hyper, store, driver),
        observation_space=observation_space(config.observation),
        action_space=action_space(),
    )
    return TrainingSession(
        SessionSpec(
            game=game,
            runners=config.env_runners,
            envs_per_runner=config.envs_per_runner,
            batch_size=config.batch_size,
            curiosity=config.rnd,
            seed=config.seed,
            observation=config.observation,
            hyper=hyper,
        )
    )


def create_evaluation(run: RunId, config: RunConfig, driver: DriverGroup) -> Evaluation:
    """Evaluation of the run's game: nothing recorded, nothing shaped."""
    fields = play_config(run, config, hyper_of(driver), None, driver, EVALUATION_RUNNER)
    return Evaluation(lambda envs: RLlibVectorEnv({**fields, "num_envs": envs}), config.seed)


def hyper_of(driver: DriverGroup) -> Hyperparameters:
    """The algorithm's numbers, with those that the settings may change."""
    return Hyperparameters(learning_rate=driver.learning_rate, entropy=driver.entropy, curiosity=driver.curiosity)


def start_ray(runners: int, driver: DriverGroup) -> None:
    """Ray for this process. An own one is told of a CPU more than it needs, because with too few it waits for ever."""
    if ray.is_initialized():
        return
    if driver.ray_address is not None:
        ray.init(address=driver.ray_address, log_to_driver=False)
        return
    ray.init(
        address="local",  # else Ray joins any cluster that somebody started on this machine
        num_cpus=driver.ray_cpus or runners + OWN_CORES,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
    )


def stop_ray() -> None:
    """End an own Ray with all its processes, or leave the cluster."""
    if ray.is_initialized():
        ray.shutdown()
