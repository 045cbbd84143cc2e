"""The driver itself reports an unplayable run, immediately: in an env runner it would be one more failure."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import ray

from services.trainer.driver.session_factory import check_playable, create_session
from services.trainer.rl.session_config import TrainingSessionConfig, UnplayableRun
from services.trainer.settings import DriverGroup
from shared.config.configure import EXIT_CONFIG
from shared.contracts.run import RunConfig
from shared.store.object_store import local_store
from shared.store.port import Store
from tests.unit.trainer.run_fixtures import CONFIG, RUN, order, run_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120), pytest.mark.filterwarnings("ignore")]

WRONG: list[tuple[dict[str, Any], list[float], str]] = [
    ({"game": "oracle-of-seasons"}, [], "needs your own ROM image"),
    ({"rewards": "nosuch"}, [], "unknown reward profile 'nosuch'"),
    ({"world": "realm"}, [0.2], "a curriculum needs a walk-through"),
    ({"world": "garden"}, [0.1, 0, 0, 0.2], "can begin after its first 3 milestones"),
]


@pytest.mark.parametrize(("named", "curriculum", "sentence"), WRONG)
def test_missing_files_and_names_are_refused_before_anything_starts(
    named: dict[str, Any], curriculum: list[float], sentence: str
) -> None:
    config = CONFIG.model_copy(update={"env_runners": 3, **named})
    driver = DriverGroup(curriculum=curriculum)
    with pytest.raises(UnplayableRun, match=sentence):
        create_session(TrainingSessionConfig.of(RUN, config, driver, None), driver)


def test_env_runners_without_room_are_refused_before_rllib_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 1.0})
    driver = DriverGroup(ray_cpus=1)
    config = CONFIG.model_copy(update={"env_runners": 2})
    with pytest.raises(
        UnplayableRun, match="each of the 2 env runners needs a CPU of Ray, and Ray has 1: raise ZELDA_D"
    ):
        create_session(TrainingSessionConfig.of(RUN, config, driver, None), driver)


def test_a_playable_run_is_accepted() -> None:
    check_playable(TrainingSessionConfig(RUN, CONFIG, curriculum=(0.2,)))


def test_a_driver_with_nothing_to_play_exits_with_sentence_and_config_code(
    tmp_path: Path,
) -> None:
    config = CONFIG.model_copy(update={"env_runners": 3, "game": "oracle-of-seasons"})
    asyncio.run(ordered(local_store(tmp_path), config))
    environ = {**os.environ, "ZELDA_STORE__URL": f"file://{tmp_path}"}
    command = [sys.executable, "-m", "services.trainer.driver", "--run", RUN]
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100)
    assert ended.returncode == EXIT_CONFIG, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("driver: oracle-of-seasons needs your own ROM image")


async def ordered(store: Store, config: RunConfig) -> None:
    await run_in(store, config=config)
    await order(store, config=config)
