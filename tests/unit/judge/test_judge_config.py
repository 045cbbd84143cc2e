"""Files and settings of the judge: an error is one sentence that names file and field."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.judge.config import JudgesFile, load_judges, load_phases, rules_only
from services.judge.settings import JudgeSettings
from services.judge.wiring import wire
from shared.bus.memory import MemoryBus
from shared.config.configure import read_settings
from shared.config.yaml_document import ConfigError
from shared.contracts.scores import DIMENSIONS
from shared.errors import Fatal
from shared.runtime.service import ServicePorts
from shared.store.memory import MemoryStore

ROUTES: dict[str, Any] = {"r": {"url": "http://127.0.0.1:1/v1"}}
JUDGE: dict[str, Any] = {"name": "state", "route": "r", "model": "m", "dimensions": ["progress"]}


def test_built_in_judges_are_the_three_of_the_design() -> None:
    file = load_judges(None, "http://127.0.0.1:9/v1")
    assert {judge.name: judge.route for judge in file.judges} == {
        "state": "rules-state",
        "puzzle": "rules-puzzle",
        "vision": "rules-vision",
    }
    assert sorted(name for judge in file.judges for name in judge.dimensions) == sorted(DIMENSIONS)
    assert {route.url for route in file.routes.values()} == {"http://127.0.0.1:9/v1"}
    assert [judge.votes for judge in file.judges] == [(3, 7, 11)] * 3
    assert file.weights.as_dict() == {"progress": 0.4, "dialog": 0.2, "puzzle": 0.2, "novelty": 0.1, "efficiency": 0.1}


def test_weights_of_dimensions_that_no_judge_rates_are_divided() -> None:
    one = JudgesFile.model_validate({"routes": ROUTES, "judges": [JUDGE]})
    assert one.weights.as_dict() == {"progress": 1, "dialog": 0, "puzzle": 0, "novelty": 0, "efficiency": 0}
    two = JudgesFile.model_validate({"routes": ROUTES, "judges": [{**JUDGE, "dimensions": ["novelty", "progress"]}]})
    assert two.weights.as_dict() == pytest.approx(
        {"progress": 0.8, "dialog": 0, "puzzle": 0, "novelty": 0.2, "efficiency": 0}
    )
    assert two.with_rubric("v2").weights.as_dict() == two.weights.as_dict()


def test_built_in_phases_load_with_their_games() -> None:
    file = load_phases(None)
    assert [phase.name for phase in file.phases] == ["dungeon", "early-game", "overworld-travel"]
    assert rules_only().judges[0].dimensions == DIMENSIONS


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"judges": []}, "judges: Tuple should have at least 1 item"),
        ({"judges": [JUDGE, JUDGE]}, "names must be unique"),
        ({"judges": [{**JUDGE, "route": "gone"}]}, "judge state: unknown route 'gone'; routes are: r"),
        ({"judges": [{**JUDGE, "route": None}]}, "judge state: kind model needs a route"),
        ({"judges": [{**JUDGE, "temperature": 0}]}, "at temperature 0 all votes are copies"),
        ({"judges": [{**JUDGE, "dimensions": ["beauty"]}]}, "not beauty"),
        ({"judges": [{**JUDGE, "dimensions": ["progress", "progress"]}]}, "at most once"),
        ({"judges": [{**JUDGE, "votes": [7, 3]}]}, "rising numbers of votes"),
        ({"judges": [{**JUDGE, "votes": [3, 99]}]}, "rising numbers of votes"),
        ({"judges": [{**JUDGE, "name": "State!"}]}, "is not a JudgeName"),
        ({"judges": [{**JUDGE, "colour": "red"}]}, "judges.0.colour: no such field"),
        ({"routes": {"r": {"url": "ftp://host/v1"}}}, "is not an address"),
        ({"routes": {"r": {"url": "http://169.254.169.254/v1"}}}, "link-local metadata address"),
        ({"routes": {"r": {"url": "http://user:hunter2@host/v1"}}}, "must not contain a password"),
        ({"routes": {"r": {"url": "http://h/v1", "token_file": "/nowhere/token"}}}, "no file '/nowhere/token'"),
        ({"routes": {"r": {"url": "http://h/v1", "ca_file": __file__}}}, "no certificate in"),
        ({"routes": {"r": {"url": "http://127.0.0.1:80890/v1"}}}, "the port must be a number up to 65535"),
        (
            {"routes": {"r": {"url": "http://h/v1", "direct_url": "https://h:x/v1"}}},
            "routes.r.direct_url: the port must be",
        ),
        ({"routes": {"r": {"url": "http://h/v1", "verify": False}}}, "routes.r.verify: no such field"),
        ({"routes": {"r": {"url": "http://h/v1", "attempts": 5}}}, "less than or equal to 2"),
        ({"routes": {"r": {"url": "http://h/v1", "objective": "a\r\nb: c"}}}, "routes.r.objective"),
        ({"rubric": "V 2"}, "rubric: String should match"),
        ({"weights": {"progress": 0.9}}, "weights sum to 1.500"),
        (
            {"weights": {"progress": 0, "dialog": 0, "puzzle": 1, "novelty": 0, "efficiency": 0}},
            "weights: all that judges rate (progress) has weight 0",
        ),
    ],
)
def test_invalid_judges_file_is_reported_in_one_sentence(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / "judges.yaml"
    path.write_text(yaml.safe_dump({"routes": ROUTES, "judges": [JUDGE], **change}))
    with pytest.raises(ConfigError) as caught:
        load_judges(path, "")
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1, 2", "not YAML"),
        ("since: 2024-13-45", "not YAML: month must be in 1..12"),
        ("[" * 5_000, "not YAML: it is nested too deeply"),
        ("- a", "not a mapping"),
        ("phases: [{name: x, when: {is_night: true}}]", "phases.0.when.is_night"),
        ("phases: [{name: x, weights: {puzzle: 1}}]", "must sum to 1"),
        ("phases: [{name: x, weights: {puzzle: 0}}]", "weights sum to 0.800"),
    ],
)
def test_invalid_phases_file_is_reported_in_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "phases.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load_phases(path)


def test_settings_check_the_files_they_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "judges.yaml"
    path.write_text("routes: 3")
    environment = {"ZELDA_STORE__URL": "memory://", "ZELDA_JUDGES_FILE": str(path), "ZELDA_JUDGE__SLOT": "3"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    _, problems = read_settings(JudgeSettings, environment)
    assert any("ZELDA_JUDGE__SLOT: no such setting; did you mean ZELDA_JUDGE__SLOTS?" in line for line in problems)
    assert any(line.startswith("ZELDA_JUDGES_FILE: ") and "routes" in line for line in problems)


async def test_service_refuses_a_rubric_that_other_services_do_not_read(tmp_path: Path) -> None:
    path = tmp_path / "judges.yaml"
    path.write_text(yaml.safe_dump({"rubric": "v2", "routes": ROUTES, "judges": [JUDGE]}))
    settings = JudgeSettings.model_validate({"store": {"url": "memory://"}, "judges_file": path})
    with pytest.raises(Fatal, match=r"judges.yaml: rubric 'v2': the other services read 'default' only"):
        await wire(settings, ServicePorts(MemoryBus(), MemoryStore(), asyncio.Event()))
