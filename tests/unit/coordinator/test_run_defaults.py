"""New runs take the installation's defaults, and a run for which the cluster has no room gets a clear answer."""

from pathlib import Path

import pytest

from services.coordinator.api.models import NewRun
from services.coordinator.api.run_defaults import RunDefaults, UnsuitableRun
from services.coordinator.api.run_service import RunService
from services.coordinator.settings import CoordinatorSettings
from shared.contracts.run import RunConfig
from tests.unit.coordinator.api_client import client
from tests.unit.coordinator.harness import Harness

OF_NINE_CORES = RunDefaults({"env_runners": 9, "envs_per_runner": 4, "shaping": {"coefficient": 1.0}}, 12)


def test_a_request_is_completed_by_the_installation() -> None:
    config = OF_NINE_CORES.complete(RunConfig(world="garden"))
    assert (config.world, config.env_runners, config.envs_per_runner) == ("garden", 9, 4)


def test_a_request_replaces_single_defaults() -> None:
    asked = RunConfig.model_validate({"env_runners": 2, "shaping": {"mode": "potential"}})
    config = OF_NINE_CORES.complete(asked)
    assert (config.env_runners, config.envs_per_runner) == (2, 4)
    assert (config.shaping.mode, config.shaping.coefficient) == ("potential", 1.0)


def test_more_env_runners_than_cores_are_refused() -> None:
    with pytest.raises(UnsuitableRun, match=r"env_runners: 13 .* have 12: ask for at most 12"):
        OF_NINE_CORES.complete(RunConfig(env_runners=13))
    assert OF_NINE_CORES.complete(RunConfig(env_runners=12)).env_runners == 12


def test_learners_share_the_cores_of_the_env_runners() -> None:
    with pytest.raises(UnsuitableRun, match=r"learners: 13 of 14 learners .* have 12 cores: ask for at most 13"):
        OF_NINE_CORES.complete(RunConfig(learners=14))
    assert OF_NINE_CORES.complete(RunConfig(learners=13, env_runners=12)).learners == 13


def test_a_short_epoch_that_the_defaults_do_not_fit_names_them() -> None:
    with pytest.raises(UnsuitableRun, match=r"no segment would be complete.*can replace: env_runners, envs_per_runner"):
        OF_NINE_CORES.complete(RunConfig(epoch_steps=5_000))


def test_without_defaults_nothing_changes() -> None:
    assert RunDefaults().complete(RunConfig(env_runners=500)) == RunConfig(env_runners=500)


async def test_the_stored_run_has_the_completed_configuration() -> None:
    harness = Harness()
    service = RunService(harness.bus, harness.store, harness.models, harness.now, OF_NINE_CORES)
    first, new = await service.create(NewRun(config=RunConfig(world="garden")), "key-one")
    again, repeated = await service.create(NewRun(config=RunConfig(world="garden")), "key-one")
    assert (first.config.env_runners, new, repeated) == (9, True, False)
    assert again == first


def test_unknown_defaults_stop_the_service(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("operator:" + "a" * 32)
    with pytest.raises(ValueError, match="env_runnerz"):
        CoordinatorSettings.model_validate({"tokens_file": tokens, "run_defaults": {"env_runnerz": 3}})


async def test_a_game_without_its_rom_is_refused_with_a_remedy(tmp_path: Path) -> None:
    harness = Harness()
    harness.service = RunService(
        harness.bus, harness.store, harness.models, harness.now, RunDefaults(games=["bramble"])
    )
    async with client(harness, tmp_path) as http:
        refused = await http.post("/runs", json={"config": {"game": "oracle-of-seasons"}})
        accepted = await http.post("/runs", json={"config": {"game": "bramble"}})
    assert (refused.status_code, accepted.status_code) == (422, 201)
    assert refused.json()["detail"].startswith(
        "config.game: this system has no ROM of oracle-of-seasons: start it with `zelda up --rom FILE`"
    )


def test_an_installation_that_knows_no_games_refuses_none() -> None:
    assert RunDefaults().complete(RunConfig(game="oracle-of-seasons")).game == "oracle-of-seasons"
