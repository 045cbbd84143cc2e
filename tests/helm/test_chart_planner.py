"""Planner and guidance on a cluster: only the pods that run drivers reach models, and only where the values say so."""

from pathlib import Path
from typing import Any

import pytest

from deploy.generate.upgrade_table import _pods as compared_pods
from services.trainer.planning.planner_file import PlannerFile, load_planner_file
from services.trainer.settings import DriverSettings
from tests.helm.operators import kuberay, network
from tests.helm.pods import materialize
from tests.helm.rendering import CHART, NAMESPACE, PROFILES, Object, merged, named, of_kind, pod_templates, profile
from tests.helm.rendering import render as objects_of
from tests.helm.test_chart_environment import problems_of

ON_RAY: dict[str, Any] = {"services": {"trainer": {"backend": "ray"}}, "apis": {"ray": "on"}}
ENABLED: dict[str, Any] = {"planner": {"enabled": True}}
GATEWAY = {"network.openshift.io/policy-group": "ingress"}
SHARED: dict[str, Any] = {
    "llm": {
        "enabled": False,
        "shared": {"namespace": "models", "plannerObjective": "plans", "createRoleBinding": True},
    }
}


def planned(name: str, *more: dict[str, Any]) -> list[Object]:
    """A profile with a planner, and further values."""
    values = merged(profile(name), ENABLED)
    for one in more:
        values = merged(values, one)
    return objects_of(values)


def with_planner(objects: list[Object]) -> dict[str, Object]:
    """Owner -> template of the pods that have the planner's file."""
    return {owner: pod for owner, pod in pod_templates(objects) if "planner" in volumes(pod)}


def volumes(pod: Object) -> dict[str, Object]:
    return {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}


def file_of(objects: list[Object], folder: Path) -> PlannerFile:
    """What the driver reads in its pod."""
    ((_, pod),) = with_planner(objects).items()
    container = materialize(objects, pod, pod["spec"]["containers"][0]["name"], folder)
    return load_planner_file(Path(container.environment["ZELDA_DRIVER__PLANNER_FILE"]), "")


def planning(objects: list[Object]) -> Object:
    """The policy that opens the way to the models."""
    spec: Object = named(objects, "NetworkPolicy", "zelda-planning")["spec"]
    return spec


def subjects(objects: list[Object]) -> list[str]:
    (binding,) = (one for one in of_kind(objects, "RoleBinding") if one["metadata"]["name"].endswith("judge-models"))
    assert all(subject["namespace"] == NAMESPACE for subject in binding["subjects"])
    return [subject["name"] for subject in binding["subjects"]]


@pytest.mark.parametrize("name", PROFILES)
def test_without_a_planner_nothing_of_it_is_rendered(name: str) -> None:
    objects = objects_of(merged(profile(name), ON_RAY))
    assert [one["metadata"]["name"] for one in objects if "planner" in one["metadata"]["name"]] == []
    assert [one for one in of_kind(objects, "NetworkPolicy") if one["metadata"]["name"] == "zelda-planning"] == []
    for owner, pod in pod_templates(objects):
        assert "planner" not in str(pod["spec"]).lower(), owner
    if name != "dev":
        assert subjects(objects) == ["zelda-judge"]


@pytest.mark.parametrize("name", PROFILES)
def test_of_rays_pods_only_the_head_gets_file_and_token(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    objects = planned(name, ON_RAY)
    assert set(with_planner(objects)) == {"RayCluster/zelda-ray/head"}
    for owner, pod in pod_templates(objects):
        own = owner == "RayCluster/zelda-ray/head"
        assert ("planner-token" in volumes(pod)) == (own and name != "dev"), owner
        assert ("ZELDA_DRIVER__PLANNER_FILE" in str(pod["spec"])) == own, owner
    assert set(file_of(objects, tmp_path).routes) == {"dialog", "puzzle", "text", "vision"}
    head = with_planner(objects)["RayCluster/zelda-ray/head"]
    environment = materialize(objects, head, "ray-head", tmp_path).environment
    assert problems_of(DriverSettings, environment, monkeypatch) == []


def test_without_ray_the_trainers_pod_runs_the_drivers(tmp_path: Path) -> None:
    objects = planned("dev")
    assert set(with_planner(objects)) == {"Deployment/zelda-trainer"}
    routes = file_of(objects, tmp_path).routes
    assert {route.url for route in routes.values()} == {"http://zelda-rules-judge.zelda-rl.svc:8080/v1"}
    every = of_kind(objects, "NetworkPolicy")
    labels = {owner: pod["metadata"]["labels"] for owner, pod in pod_templates(objects)}
    judge = labels["Deployment/zelda-rules-judge"]
    assert {owner for owner, own in labels.items() if network.connects(every, own, judge, 8080)} == {
        "Deployment/zelda-trainer",
        "Deployment/zelda-judge",
    }


@pytest.mark.parametrize("gateway", [True, False])
@pytest.mark.parametrize("name", ["openshift", "prod"])
def test_of_rays_pods_only_the_head_reaches_the_models(name: str, gateway: bool, tmp_path: Path) -> None:
    objects = planned(name, {"llm": {"useGateway": gateway}})
    policy = planning(objects)
    labels = {owner: pod["metadata"]["labels"] for owner, pod in pod_templates(objects)}
    selected = {owner for owner, own in labels.items() if network.selects(policy["podSelector"], own)}
    assert selected == {"RayCluster/zelda-ray/head"}
    every, model = of_kind(objects, "NetworkPolicy"), {"app.kubernetes.io/part-of": "llminferenceservice"}
    reaching = {owner for owner, own in labels.items() if network.connects(every, own, model, 8000)}
    assert reaching == (set() if gateway else {"RayCluster/zelda-ray/head", "Deployment/zelda-judge"})
    if gateway:
        assert policy["egress"] == [
            {"to": [{"namespaceSelector": {"matchLabels": GATEWAY}}], "ports": [{"protocol": "TCP", "port": 443}]}
        ]
    url = file_of(objects, tmp_path).routes["puzzle"].url
    assert ("kserve-workload-svc" in url) is not gateway


@pytest.mark.parametrize("proxy", ["on", "off"])
@pytest.mark.parametrize("name", ["openshift", "prod"])
def test_the_heads_account_may_call_the_models(name: str, proxy: str) -> None:
    """KubeRay replaces the account of a head where it adds its proxy; elsewhere the chart's own stays."""
    objects = planned(name, {"ray": {"authProxy": proxy}})
    (cluster,) = kuberay.clusters(objects)
    rendered = cluster["spec"]["headGroupSpec"]["template"]["spec"].get("serviceAccountName")
    if proxy == "on":
        (release,) = (one for one in kuberay.RELEASES.values() if "3.5" in one.platforms)
        account = kuberay.operated(cluster, release).pods["head"]["spec"]["serviceAccountName"]
        assert rendered is None, "Argo CD would see a difference for ever"
    else:
        account = rendered
        assert named(objects, "ServiceAccount", account)["automountServiceAccountToken"] is False
    assert subjects(objects) == ["zelda-judge", account]
    (source, *_) = volumes(with_planner(objects)["RayCluster/zelda-ray/head"])["planner-token"]["projected"]["sources"]
    judge = named(objects, "Deployment", "zelda-judge")["spec"]["template"]
    assert source == volumes(judge)["judge-token"]["projected"]["sources"][0]


def test_without_log_in_at_the_models_there_is_no_token() -> None:
    objects = planned("openshift", {"llm": {"auth": False}})
    assert "planner-token" not in volumes(with_planner(objects)["RayCluster/zelda-ray/head"])
    assert subjects(objects) == ["zelda-judge"]


def test_plans_have_a_priority_of_their_own(tmp_path: Path) -> None:
    objects = planned("openshift", {"planner": {"priority": 3, "routes": {"vision": None}}})
    file = file_of(objects, tmp_path)
    assert set(file.routes) == {"dialog", "puzzle", "text"}
    named_ = {route.objective for route in file.routes.values()}
    assert named_ == {"zelda-state-planner", "zelda-puzzle-planner"}
    made = {one["metadata"]["name"]: one["spec"] for one in of_kind(objects, "InferenceObjective")}
    assert {name: made[name]["priority"] for name in named_ if name is not None} == dict.fromkeys(named_, 3)
    assert made["zelda-state-planner"]["poolRef"] == made["zelda-state"]["poolRef"]
    assert made["zelda-state"]["priority"] == -10
    assert "zelda-vision-planner" not in made


def test_models_of_another_namespace_are_called_with_its_objective(tmp_path: Path) -> None:
    objects = planned("openshift", SHARED)
    route = file_of(objects, tmp_path).routes["puzzle"]
    assert (route.objective, route.url.endswith("/models/qwen25-32b/v1")) == ("plans", True)
    assert subjects(objects)[1:] == ["zelda-ray-oauth-proxy-sa"]
    assert of_kind(objects, "InferenceObjective") == []


def test_endpoints_of_others_get_their_key_and_ports(tmp_path: Path) -> None:
    routes = {
        name: {"baseUrl": f"https://{name}.example.com:{port}/v1", "model": f"model-{name}"}
        for name, port in (("state", 443), ("puzzle", 8443), ("vision", 443))
    }
    external = {"routes": routes, "apiKeySecret": "llm-key", "ca": {"name": "llm-ca"}}
    values = {"judges": {"mode": "external", "external": external}, "llm": {"enabled": False}}
    objects = planned("openshift", values)
    route = file_of(objects, tmp_path).routes["puzzle"]
    assert (route.url, route.model) == ("https://puzzle.example.com:8443/v1", "model-puzzle")
    assert route.token_file is not None
    assert route.ca_file is not None
    head = volumes(with_planner(objects)["RayCluster/zelda-ray/head"])
    assert head["planner-token"]["secret"]["secretName"] == "llm-key"  # the name of a Secret
    assert head["planner-ca"]["configMap"]["name"] == "llm-ca"
    assert {port["port"] for rule in planning(objects)["egress"] for port in rule["ports"]} == {443, 8443}


def test_limits_and_prices_reach_the_driver_without_replacing_pods(tmp_path: Path) -> None:
    limits = {
        "routes": {"vision": {"timeoutSeconds": 30, "concurrency": 2, "prices": {"output": 0.6}}},
        "budget": {"planner": {"calls": 200}, "guidance": {"money": 1.5}},
        "keepAnswers": False,
    }
    objects = planned("openshift", {"planner": limits})
    file = file_of(objects, tmp_path)
    vision = file.routes["vision"]
    assert (vision.total_timeout_s, vision.longest_timeout_s, vision.max_concurrent) == (30, 30, 2)
    assert (vision.prices.output, vision.max_output_tokens, vision.model) == (0.6, 150, "Qwen/Qwen2.5-VL-32B-Instruct")
    assert (file.budget.planner.calls, file.budget.guidance.money, file.keep_answers) == (200, 1.5, False)
    before, after = (
        compared_pods(CHART, merged(merged(profile("openshift"), ENABLED), {"planner": more})) for more in ({}, limits)
    )
    assert before == after
