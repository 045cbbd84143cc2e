"""Every profile, with and without each optional API, renders objects that an API server accepts."""

import json
from functools import cache
from typing import Any

import kubernetes_validate
import pytest

from tests.helm.custom_resources import FOLDER, problems
from tests.helm.rendering import APIS, CHART, PROFILES, Object, merged, of_kind, profile, render

KUBERNETES = "1.32"
CUSTOM = (
    "Route",
    "ServiceMonitor",
    "PodMonitor",
    "PrometheusRule",
    "GrafanaDashboard",
    "ScaledObject",
    "RayCluster",
    "RayJob",
    "LocalQueue",
    "ClusterQueue",
    "ResourceFlavor",
    "LLMInferenceService",
    "InferenceObjective",
)
EVERYTHING: dict[str, Any] = {
    "services": {"trainer": {"backend": "ray"}},  # an epoch job needs Ray
    "kueue": {"admin": {"enabled": True, "nodeLabels": {"role": "train"}, "tolerations": [{"key": "train"}]}},
    "jobs": {kind: {"enabled": True, "run": "first"} for kind in ("epoch", "evaluation", "rewardmodel")},
    "ray": {
        "gcsFaultTolerance": {"enabled": True, "redisAddress": "redis:6379", "secretName": "redis"},
    },
    "rom": {"source": "secret", "name": "game", "path": "game.gbc", "sha256": "0" * 64},
    "tracing": {"endpoint": "https://collector.observability.svc:4318", "ca": {"name": "collector-ca"}},
}


def switched(value: str) -> dict[str, Any]:
    return {"apis": dict.fromkeys(APIS, value)}


# What the values must choose where an API is missing; templates/_refusals.tpl refuses the contradiction.
INSTEAD: dict[str, dict[str, Any]] = {
    "ray": {"services": {"trainer": {"backend": "local"}}, "jobs": {"epoch": {"enabled": False}}},
    "keda": {"services": {"judge": {"autoscaling": {"mode": "cpu"}}}},
    "route": {"expose": {"kind": "none", "oauth": {"enabled": False}}},
    "llmInferenceService": {"llm": {"enabled": False}, "judges": {"mode": "rules"}},
    "objectBucketClaim": {"store": {"mode": "embedded", "secretName": "store"}},
}


def without(api: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values on a cluster that lacks an API."""
    return merged(merged(values, {"apis": {api: "off"}}), INSTEAD.get(api, {}))


def variants() -> list[tuple[str, dict[str, Any]]]:
    """(title, values): each profile as it is, with everything on, and with each optional API off."""
    found = []
    for name in PROFILES:
        everything = merged(merged(profile(name), switched("on")), EVERYTHING)
        found += [(name, profile(name)), (f"{name}-everything", everything)]
        found += [(f"{name}-without-{api}", without(api, everything)) for api in APIS]
    claim = merged(profile("openshift"), {"store": {"mode": "bucketclaim"}, "apis": {"objectBucketClaim": "on"}})
    ingress = {"expose": {"kind": "ingress", "host": "zelda.example.com", "tlsSecret": "zelda-tls"}}
    return [*found, ("bucketclaim", claim), ("ingress", merged(profile("dev"), ingress))]


def kubernetes_problem(one: Object) -> str | None:
    """The violation of the Kubernetes schema, unknown fields included, or None."""
    return _problem_of(json.dumps(one, sort_keys=True))


@cache
def _problem_of(text: str) -> str | None:
    """Most objects are equal in most variants: check each only once."""
    one = json.loads(text)
    try:
        kubernetes_validate.validate(one, KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{one['kind']}/{one['metadata']['name']}: {error.message[:300]} at {list(error.path)}"
    return None


@pytest.mark.parametrize(("title", "values"), variants(), ids=[title for title, _ in variants()])
def test_rendered_objects_are_valid_kubernetes(title: str, values: dict[str, Any]) -> None:
    objects = render(values)
    found = [kubernetes_problem(one) for one in objects if one["kind"] not in (*CUSTOM, "ObjectBucketClaim")]
    assert [problem for problem in found if problem] == []
    identities = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
    assert len(identities) == len(set(identities))


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the folder with the CRD files is not beside the repository")
@pytest.mark.parametrize("name", PROFILES)
def test_custom_resources_fit_the_real_definitions(name: str) -> None:
    objects = of_kind(render(merged(merged(profile(name), switched("on")), EVERYTHING)), *CUSTOM)
    assert objects
    found = {f"{one['kind']}/{one['metadata']['name']}": problems(one) for one in objects}
    assert {who: what for who, what in found.items() if what} == {}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the folder with the CRD files is not beside the repository")
@pytest.mark.parametrize("release", ["3.3", "3.4", "3.5"])
def test_models_fit_each_platform_release(release: str) -> None:
    objects = render(merged(profile("prod"), {"platform": {"odhVersion": release}}))
    models = of_kind(objects, "LLMInferenceService")
    assert sorted(one["metadata"]["name"] for one in models) == [
        f"zelda-{n}" for n in ("qwen25-32b", "qwen25-7b", "qwen25-vl-32b")
    ]
    assert {one["metadata"]["name"]: problems(one, release) for one in models if problems(one, release)} == {}
    assert all(problems(one) == [] for one in of_kind(objects, "InferenceObjective"))


@pytest.mark.parametrize("api", APIS)
def test_a_disabled_api_renders_no_object(api: str) -> None:
    kinds = {
        "route": {"Route"},
        "monitoring": {"ServiceMonitor", "PodMonitor", "PrometheusRule"},
        "grafana": {"GrafanaDashboard"},
        "keda": {"ScaledObject"},
        "kueue": {"LocalQueue", "ClusterQueue", "ResourceFlavor"},
        "ray": {"RayCluster", "RayJob"},
        "llmInferenceService": {"LLMInferenceService"},
        "inferenceObjective": {"InferenceObjective"},
        "objectBucketClaim": {"ObjectBucketClaim"},
    }[api]
    values = merged(merged(profile("prod"), switched("on")), EVERYTHING)
    if api == "objectBucketClaim":
        values = merged(values, {"store": {"mode": "bucketclaim"}})
    assert kinds <= {one["kind"] for one in render(values)}
    assert not kinds & {one["kind"] for one in render(without(api, values))}


def test_the_chart_has_no_definitions_and_no_dependencies() -> None:
    assert not (CHART / "crds").exists()
    assert not (CHART / "charts").exists()
    assert "dependencies" not in (CHART / "Chart.yaml").read_text()
