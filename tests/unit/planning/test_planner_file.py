"""The planner file is read as the judges file is: strictly, and with a sentence that names the field."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from services.trainer.driver.session_factory import planner_file_of
from services.trainer.planning.planner_file import load_planner_file
from services.trainer.rl.session_config import UnplayableRun
from services.trainer.settings import DriverGroup
from shared.config.yaml_document import ConfigError
from shared.contracts.run import PlannerConfig, RunConfig

ROUTE = {"url": "http://models.test/dialog/v1", "model": "qwen25-7b"}


def written(tmp_path: Path, data: Any) -> Path:
    path = tmp_path / "planner.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def test_built_in_routes_answer_every_mode_at_one_address() -> None:
    file = load_planner_file(None, "http://here.test:1/v1")
    assert set(file.routes) == {"dialog", "puzzle", "text", "vision"}
    assert {route.url for route in file.routes.values()} == {"http://here.test:1/v1"}
    limits = {mode: route.total_timeout_s for mode, route in file.routes.items()}
    assert (limits["text"], limits["vision"]) == (15, 60)
    assert {route.objective for route in file.routes.values()} == {"planner", "guidance"}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([], "not a mapping"),
        ({}, "routes"),
        ({"routes": {}}, "routes"),
        ({"routes": {"cooking": ROUTE}}, "cooking"),
        ({"routes": {"dialog": {**ROUTE, "modle": "x"}}}, "modle"),
        ({"routes": {"dialog": {"url": "ftp://x", "model": "m"}}}, "url"),
        ({"routes": {"dialog": {"url": "http://x/v1"}}}, "model"),
        ({"routes": {"dialog": {**ROUTE, "total_timeout_s": 30}}}, "longest_timeout_s 15 is shorter"),
        ({"routes": {"dialog": ROUTE}, "budget": {"planner": {"calls": -1}}}, "calls"),
    ],
)
def test_wrong_file_is_refused_with_its_field(tmp_path: Path, data: Any, sentence: str) -> None:
    path = written(tmp_path, data)
    with pytest.raises(ConfigError, match=sentence) as caught:
        load_planner_file(path, "")
    assert str(caught.value).startswith(str(path))


def test_run_is_refused_before_it_starts_if_a_route_is_missing(tmp_path: Path) -> None:
    driver = DriverGroup(planner_file=written(tmp_path, {"routes": {"dialog": ROUTE}}))
    run = RunConfig(planner=PlannerConfig(mode="model"))
    with pytest.raises(UnplayableRun, match="asks models about puzzle"):
        planner_file_of(run, driver)
    both = planner_file_of(RunConfig(planner=PlannerConfig(mode="model", puzzles=False)), driver)
    assert both is not None
    assert planner_file_of(RunConfig(planner=PlannerConfig(mode="rules")), driver) is None


def test_settings_name_the_field_of_a_wrong_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="routes"):
        DriverGroup(planner_file=written(tmp_path, {"routes": {}}))
