"""Training sessions of different shapes on Bramble's vale, for bench/runners.py."""

import time
from collections.abc import Callable

from services.trainer.driver.session import TrainingSession
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.session_config import TrainingSessionConfig
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig


def session(runners: int, envs: int, batch: int) -> TrainingSession:
    """A session that plays the vale as a run does by default; it records and shapes nothing."""
    config = RunConfig(env_runners=runners, envs_per_runner=envs, batch_size=batch)
    made = TrainingSession(TrainingSessionConfig(RunId("bench"), config, config.ppo))
    made.begin(lambda numbers: EpochPlan(0), 0)
    return made


def turn(one: TrainingSession) -> Callable[[], float]:
    """One batch sampled and learnt; steps per second."""

    def run() -> float:
        began, steps = time.perf_counter(), one.lifetime_steps
        one.iterate()
        return (one.lifetime_steps - steps) / (time.perf_counter() - began)

    return run
