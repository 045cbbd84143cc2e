"""Judges, models and new runs as data: any number of judges, models of another team, and runs that fit the workers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.generate.values.judges import JudgeSpecValues, LlmModelValues
from services.judge.config import JudgesFile, JudgeSpec, load_judges, load_phases
from shared.contracts.run import RunConfig
from tests.helm.operators import kserve, network
from tests.helm.pods import literal, materialize
from tests.helm.rendering import NAMESPACE, ROOT, Object, merged, named, of_kind, profile, render

FOURTH: dict[str, Any] = {
    "judges": {
        "judges": [
            {"name": "state", "route": "state", "dimensions": ["progress", "efficiency"], "temperature": 0.4},
            {"name": "puzzle", "route": "puzzle", "dimensions": ["puzzle"], "votes": [5]},
            {"name": "vision", "route": "vision", "dimensions": ["novelty"], "frames": 8},
            {"name": "talk", "route": "talk", "dimensions": ["dialog"], "prices": {"prompt": 0.2, "output": 0.6}},
        ],
        "budget": {"calls": 500, "money": 2.5},
        "phases": {"phases": [{"name": "cave", "when": {"in_dungeon": True}, "guidance": "Look at the keys."}]},
    },
    "llm": {"models": {"talk": {"name": "gemma", "uri": "oci://registry.example.com/gemma:2", "model": "gemma"}}},
}
SMALL: dict[str, Any] = {
    "name": "state",
    "route": "state",
    "dimensions": ["progress"],
    "asking": "probabilities",
    "facts": "short",
    "examples": True,
}
SHARED: dict[str, Any] = {
    "llm": {
        "enabled": False,
        "shared": {"namespace": "models", "objective": "training", "createRoleBinding": True},
        "gatewayUrl": "https://gateway.models.svc",
    },
    "judges": {"tokenAudience": "https://models.example.com", "ca": {"name": "their-ca"}},
}


def judges_of(objects: list[Object], folder: Path) -> JudgesFile:
    """What the judge reads in its pod."""
    pod = named(objects, "Deployment", "zelda-judge")["spec"]["template"]
    materialize(objects, pod, "judge", folder)
    return load_judges(folder / "etc/zelda/judges.yaml", "")


def environment(objects: list[Object], service: str) -> dict[str, str]:
    return literal(named(objects, "Deployment", f"zelda-{service}")["spec"]["template"]["spec"]["containers"][0])


def test_a_fourth_judge_has_its_model_and_its_prices(tmp_path: Path) -> None:
    objects = render(merged(profile("openshift"), FOURTH))
    judges = {str(judge.name): judge for judge in judges_of(objects, tmp_path).judges}
    assert list(judges) == ["state", "puzzle", "vision", "talk"]
    assert (judges["state"].temperature, judges["puzzle"].votes, judges["vision"].frames) == (0.4, (5,), 8)
    assert (judges["talk"].model, judges["talk"].prices.prompt, judges["talk"].prices.output) == ("gemma", 0.2, 0.6)
    names = {one["metadata"]["name"] for one in of_kind(objects, "LLMInferenceService")}
    assert "zelda-gemma" in names
    (rule,) = named(objects, "Role", "zelda-judge-models")["rules"]
    assert set(rule["resourceNames"]) == names


def test_the_judge_that_the_docs_recommend_is_accepted(tmp_path: Path) -> None:
    published = yaml.safe_load((ROOT / "docs/results/judges-votes/qwen25-1b5-examples/judges.yaml").read_text())
    (wanted,) = (JudgeSpec.model_validate({**one, "route": "state"}) for one in published["judges"])
    values = {**SMALL, "name": "llm", "maxPromptTokens": 7700, "maxOutputTokens": 100, "spreadScale": 2.5}
    objects = render(merged(profile("openshift"), {"judges": {"judges": [values], "weights": published["weights"]}}))
    file = judges_of(objects, tmp_path)
    (judge,) = file.judges
    changed = {"model": wanted.model, "spread_scale": wanted.spread_scale}
    assert judge.spread_scale == 2.5
    assert judge.model_copy(update=changed) == wanted
    assert file.weights.as_dict() == published["weights"]


def test_the_judge_of_the_installation_page_is_accepted(tmp_path: Path) -> None:
    (written,) = re.findall(r"`(\{name: state, .+?\})`", (ROOT / "docs/install-openshift.md").read_text())
    assert yaml.safe_load(written) == SMALL
    file = judges_of(render(merged(profile("openshift"), {"judges": {"judges": [SMALL]}})), tmp_path)
    assert file.weights.progress == 1, "other dimensions are not rated"


@pytest.mark.parametrize("name", ["1", "7e3", "no"])
def test_a_judge_may_have_a_name_that_yaml_takes_for_another_type(name: str, tmp_path: Path) -> None:
    judge = {"name": name, "route": name, "dimensions": ["progress"]}
    objects = render(merged(profile("dev"), {"judges": {"judges": [judge]}}))
    (read,) = judges_of(objects, tmp_path).judges
    assert (read.name, read.route) == (name, name)


def test_the_runbooks_remedy_for_a_wrong_gateway_gives_the_models_address(tmp_path: Path) -> None:
    """KServe's status.url ends with the namespace and the name (router_discovery.go), which the chart adds itself."""
    page = (ROOT / "docs/runbook.md").read_text()
    (advice,) = re.findall(r"^\| 404 on the gateway \|.*\| (.+?) \|$", page, re.MULTILINE)
    assert "`llm.gatewayUrl` to `status.url` of the LLMInferenceService without its path" in advice
    path = f"/{NAMESPACE}/zelda-qwen25-7b"
    objects = render(merged(profile("openshift"), {"llm": {"gatewayUrl": "https://models.example.com"}}))
    assert judges_of(objects, tmp_path).routes["state"].url == f"https://models.example.com{path}/v1"
    assert "/NAMESPACE/NAME/v1" in advice


def test_the_chart_can_set_every_field_of_a_judge() -> None:
    """`kind: rules` alone has no value: judges.mode chooses the rules judge."""
    values = set(JudgeSpecValues.model_fields)
    assert set(JudgeSpec.model_fields) - values == {"kind", "model"}  # the model belongs to the route


def test_budget_and_phases_reach_the_judge(tmp_path: Path) -> None:
    objects = render(merged(profile("openshift"), FOURTH))
    judges_of(objects, tmp_path)
    variables = environment(objects, "judge")
    assert (variables["ZELDA_JUDGE__BUDGET_CALLS"], variables["ZELDA_JUDGE__BUDGET_MONEY"]) == ("500", "2.5")
    assert "ZELDA_JUDGE__BUDGET_TOKENS" not in variables
    assert variables["ZELDA_JUDGE__PHASES_FILE"] == "/etc/zelda/phases.yaml"
    (phase,) = load_phases(tmp_path / "etc/zelda/phases.yaml").phases
    assert phase.name == "cave"


def test_an_added_model_has_the_defaults_of_the_others() -> None:
    objects = render(merged(profile("openshift"), FOURTH))
    service = named(objects, "LLMInferenceService", "zelda-gemma")
    (main,) = kserve.deployed(service, objects, "3.5")["containers"]
    default = LlmModelValues(name="gemma", uri="oci://x", model="gemma")
    assert f"--max-model-len {default.max_model_len}" in main["line"]
    assert main["resources"]["limits"]["memory"] == default.resources.limits.memory
    assert service["spec"]["replicas"] == default.replicas


def test_null_removes_a_model() -> None:
    judge = {"name": "state", "route": "state", "dimensions": ["progress"]}
    one = {"llm": {"models": {"puzzle": None, "vision": None}}, "judges": {"judges": [judge]}}
    objects = render(merged(profile("openshift"), one))
    assert [m["metadata"]["name"] for m in of_kind(objects, "LLMInferenceService")] == ["zelda-qwen25-7b"]


def test_models_of_another_namespace_are_called_and_not_created(tmp_path: Path) -> None:
    objects = render(merged(profile("openshift"), SHARED))
    assert of_kind(objects, "LLMInferenceService", "InferenceObjective") == []
    route = judges_of(objects, tmp_path).routes["puzzle"]
    assert route.url == "https://gateway.models.svc/models/qwen25-32b/v1"
    assert route.objective == "training"
    (binding,) = (one for one in of_kind(objects, "RoleBinding") if one["metadata"]["namespace"] == "models")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "zelda-judge", "namespace": "zelda-rl"}]
    (role,) = (one for one in of_kind(objects, "Role") if one["metadata"]["namespace"] == "models")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert role["rules"][0]["resourceNames"] == ["qwen25-32b", "qwen25-7b", "qwen25-vl-32b"]
    volumes = named(objects, "Deployment", "zelda-judge")["spec"]["template"]["spec"]["volumes"]
    assert "their-ca" in str(volumes)
    assert "https://models.example.com" in str(volumes)


@pytest.mark.parametrize("gateway", [True, False])
def test_judges_reach_the_models_of_another_namespace(gateway: bool) -> None:
    objects = render(merged(profile("openshift"), merged(SHARED, {"llm": {"useGateway": gateway}})))
    policies = of_kind(objects, "NetworkPolicy")
    judge = named(objects, "Deployment", "zelda-judge")["spec"]["template"]["metadata"]["labels"]
    (policy,) = (one for one in policies if one["metadata"]["name"] == "zelda-judging")
    assert network.selects(policy["spec"]["podSelector"], judge)
    ((peer,),) = (rule["to"] for rule in policy["spec"]["egress"])
    place = peer["namespaceSelector"]["matchLabels"]
    expected = (
        {"network.openshift.io/policy-group": "ingress"} if gateway else {"kubernetes.io/metadata.name": "models"}
    )
    assert place == expected


@pytest.mark.parametrize(("workers", "runners", "batch"), [(3, 9, 4608), (20, 60, 30_720), (50, 150, 76_800)])
def test_new_runs_use_the_workers(workers: int, runners: int, batch: int) -> None:
    values = merged(profile("openshift"), {"ray": {"workers": {"min": workers, "max": workers}}})
    variables = environment(render(values), "coordinator")
    defaults = json.loads(variables["ZELDA_COORDINATOR__RUN_DEFAULTS"])
    derived = {"env_runners": runners, "envs_per_runner": 4, "batch_size": batch, "learners": 1}
    assert defaults == {**derived, "ppo": {"reference_batch": 4096}}
    RunConfig.model_validate(defaults)
    assert variables["ZELDA_COORDINATOR__MAX_ENV_RUNNERS"] == str(workers * 4)


def test_learners_leave_the_env_runners_their_cores() -> None:
    values = merged(profile("openshift"), {"runs": {"learners": 3}})
    defaults = json.loads(environment(render(values), "coordinator")["ZELDA_COORDINATOR__RUN_DEFAULTS"])
    assert (defaults["learners"], defaults["env_runners"], defaults["batch_size"]) == (3, 9, 4608)
    RunConfig.model_validate(defaults)


def test_values_win_over_what_the_workers_give() -> None:
    values = merged(profile("openshift"), {"runs": {"defaults": {"env_runners": 2, "epochs": 50}}})
    defaults = json.loads(environment(render(values), "coordinator")["ZELDA_COORDINATOR__RUN_DEFAULTS"])
    assert (defaults["env_runners"], defaults["epochs"], defaults["batch_size"]) == (2, 50, 4608)


def test_without_ray_the_chart_knows_no_room() -> None:
    assert not [name for name in environment(render(profile("dev")), "coordinator") if "RUN" in name]
