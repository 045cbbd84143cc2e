"""The games of an env runner, built around an epoch's plan: what they record keeps to what the epoch has left."""

from pathlib import Path

import numpy as np

from services.trainer.rl.game import play_config
from services.trainer.rl.hyper import Hyper
from services.trainer.rl.plan import EpochPlan
from services.trainer.rl.playing import PlayVector
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, SamplingConfig
from shared.runtime.settings import StoreSettings

CONFIG = RunConfig(
    world="garden",
    epoch_steps=300_000,
    segment_steps=30,
    env_runners=1,
    rnd=False,
    sampling=SamplingConfig(budget=12, milestones=False),
)
STEPS = 600  # twenty segments


def recorded(folder: Path, plan: EpochPlan) -> int:
    """How many of twenty segments are recorded under this plan."""
    store = StoreSettings(url=f"file://{folder}")
    games = PlayVector({**play_config(RunId("play"), CONFIG, Hyper(), store, None), "num_envs": 1})
    games.begin_epoch(plan)
    games.reset()
    dice = np.random.default_rng(0)
    for _ in range(STEPS):
        games.step(dice.integers(0, 7, 1))
    found = len(games.harvest(final=True).segments)
    games.close()
    return found


def test_at_the_end_of_a_resumed_epoch_its_whole_rest_of_the_budget_is_used(tmp_path: Path) -> None:
    rest = CONFIG.epoch_steps - STEPS
    assert recorded(tmp_path / "begun", EpochPlan(0)) <= 1
    assert 8 <= recorded(tmp_path / "rest", EpochPlan(0, steps=rest)) <= 12
    assert recorded(tmp_path / "used", EpochPlan(0, steps=rest, recorded=12)) == 0
