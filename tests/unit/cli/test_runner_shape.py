"""A run on this machine gets env runners that fit its cores."""

import pytest

from cli.new_run.runner_shape import with_runner_shape
from services.coordinator.api.models import NewRun


@pytest.mark.parametrize(("cores", "runners"), [(1, 0), (2, 0), (4, 3), (16, 15)])
def test_few_cores_sample_in_the_driver_and_many_keep_one_for_it(cores: int, runners: int) -> None:
    config = with_runner_shape({"world": "vale"}, cores)
    assert config == {"world": "vale", "env_runners": runners, "envs_per_runner": 8}


@pytest.mark.parametrize("named", [{"env_runners": 3}, {"envs_per_runner": 1}])
def test_a_shape_of_the_user_is_kept(named: dict[str, int]) -> None:
    assert with_runner_shape(named, 2) == named


@pytest.mark.parametrize("cores", [2, 8, 64])
@pytest.mark.parametrize("steps", [20_000, 50_000, 300_000])
def test_every_environment_can_complete_a_segment(steps: int, cores: int) -> None:
    NewRun.model_validate({"config": with_runner_shape({"epoch_steps": steps}, cores)})


def test_an_invalid_value_is_left_to_the_coordinator() -> None:
    assert with_runner_shape({"epoch_steps": "many"}, 2)["epoch_steps"] == "many"
