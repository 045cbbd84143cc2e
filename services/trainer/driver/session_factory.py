"""Creates the training session and the evaluation of a run, and starts Ray for them."""

import os
import secrets
from dataclasses import replace
from typing import Final

import ray
import torch

from services.trainer.driver.evaluation import Evaluation
from services.trainer.driver.ray_cluster import join_cluster, require_room
from services.trainer.driver.session import TrainingSession
from services.trainer.env.curriculum_starts import starts_for
from services.trainer.env.rewards import RewardProfile
from services.trainer.games import GAMES
from services.trainer.planning.assembly import asked_modes, missing_routes
from services.trainer.planning.planner_file import PlannerFile, load_planner_file
from services.trainer.rl.planning_process import PlanningProcess
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig, UnplayableRun
from services.trainer.settings import DriverGroup
from shared.config.yaml_document import ConfigError
from shared.contracts.run import PlannerConfig, RunConfig
from shared.errors import Permanent
from shared.game.emulator.start import true_start
from shared.game.games.registry import GameRequest

TOKEN_BYTES: Final = 32
WORKER_NICENESS: Final = "RAY_worker_niceness"
USAGE_STATISTICS: Final = "RAY_USAGE_STATS_ENABLED"
WORKERS_AT_START: Final = "RAY_prestart_worker_first_driver"
SPARE_CPUS: Final = 2  # of a local Ray, beside the env runners: without them it hangs
EVALUATION_RUNNER = 9_000  # no env runner has this index, so evaluation draws its own random numbers


def check_playable(config: TrainingSessionConfig) -> None:
    """Raise UnplayableRun if something that the run or the settings name is missing or does not fit.

    In an env runner the same error would look like a failing game, and the runner would retry it.
    """
    run = config.run
    if config.learner_device == "cuda" and not torch.cuda.is_available():
        raise UnplayableRun(
            "ZELDA_DRIVER__LEARNER_DEVICE is cuda, and torch finds no GPU here: set cpu, or give the driver's pod a "
            "GPU and an image with CUDA's torch (docs/install-openshift.md)"
        )
    try:
        request = GameRequest(run.world, run.difficulty, run.seed, rom=config.rom, start=config.start_state)
        game = GAMES.open(run.game, request)
        if run.game != "bramble":  # Bramble's own start is known to be good
            true_start(game)
        RewardProfile.load(run.rewards)
        if config.curriculum:
            if run.keeps_archive:
                raise Permanent(
                    "a run that keeps an archive of states needs an empty ZELDA_DRIVER__CURRICULUM: each path of the "
                    "archive begins at the true start, and none at a state that the solver made"
                )
            starts_for(game, run, config.curriculum)
    except Permanent as error:
        raise UnplayableRun(str(error)) from error


def planner_file_of(run: RunConfig, driver: DriverGroup) -> PlannerFile | None:
    """The routes of a run that asks models; None for other runs. Raises UnplayableRun if one is missing."""
    if not asked_modes(run):
        return None
    try:
        file = load_planner_file(driver.planner_file, driver.planner_url)
    except ConfigError as error:
        raise UnplayableRun(str(error)) from error
    missing = missing_routes(run, file)
    if missing is not None:
        raise UnplayableRun(missing)
    return file


def create_session(config: TrainingSessionConfig, driver: DriverGroup, env: type = RLlibVectorEnv) -> TrainingSession:
    """Return a new session that plays the run's game; start Ray, or join the cluster that the settings name.

    Raises UnplayableRun first if there is nothing to play, and Fatal if the cluster has no room or is not there.
    `env` implements `EpochVectorEnv`.
    """
    check_playable(config)
    file = planner_file_of(config.run, driver)
    start_ray(config.run.env_runners, driver, config.run.learners)
    require_room(config.run.env_runners, joined=driver.ray_address is not None)
    # Before the runners, which look for it.
    planning = None if file is None else PlanningProcess(file, config.run_id, config.store)
    return TrainingSession(config, env, planning)


def create_evaluation(config: TrainingSessionConfig) -> Evaluation:
    """Return the evaluation of the run's game: nothing recorded or shaped, no assistance, from the true start."""
    # The observation keeps its part for suggestions, which stays empty: the policy's input has this size.
    guidance = config.run.guidance.model_copy(update={"text_share": 0.0, "vision_share": 0.0})
    run = config.run.model_copy(update={"planner": PlannerConfig(), "guidance": guidance})
    alone = replace(config, run=run, store=None, curriculum=(), runner=EVALUATION_RUNNER)
    return Evaluation(lambda envs: RLlibVectorEnv({SESSION_CONFIG: alone, "num_envs": envs}), config.run.seed)


def start_ray(env_runners: int, driver: DriverGroup, learners: int = 1) -> None:
    """Start Ray in this process, or join a cluster. A local Ray gets a CPU for each env runner, and some to spare."""
    if ray.is_initialized():
        return
    if driver.ray_address is not None:
        join_cluster(driver.ray_address)
        return
    os.environ.setdefault(USAGE_STATISTICS, "0")  # Ray would send its maker statistics about this machine
    # Ray's own token is a file that everybody on the machine can read; its processes inherit this one instead.
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(TOKEN_BYTES))
    if learners > 1:  # Ray adds 15: beside other load, the driver's learner would wait for its replicas in every step
        os.environ.setdefault(WORKER_NICENESS, "0")
    elif not env_runners:  # without actors, the processes of 80 MB that Ray starts for them would stay idle
        os.environ.setdefault(WORKERS_AT_START, "0")
    ray.init(
        address="local",  # otherwise Ray joins any cluster on this machine
        num_cpus=driver.ray_cpus or env_runners + SPARE_CPUS,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
    )


def stop_ray() -> None:
    """Stop the local Ray with all its processes, or leave the cluster."""
    if ray.is_initialized():
        ray.shutdown()
