"""Traces in a cluster: services, models and the way to the collector follow `tracing`; without it nothing changes."""

from typing import Any

import pytest

from tests.helm.custom_resources import FOLDER, problems
from tests.helm.rendering import Object, containers, merged, named, of_kind, profile, render

COLLECTOR = "http://collector.observability.svc:4318"
MODELS = "http://collector.observability.svc:4317"
SERVICES = ("coordinator", "trainer", "judge", "rewardmodel", "exporter")


def traced(name: str = "openshift", **tracing: Any) -> list[Object]:
    return render(merged(profile(name), {"tracing": tracing}))


def variables(objects: list[Object], service: str) -> dict[str, str]:
    """The variables of a service's container that are about traces."""
    pod = named(objects, "Deployment", f"zelda-{service}")["spec"]["template"]
    (container,) = [one for one in containers(pod) if one["name"] == service]
    return {one["name"]: one["value"] for one in container["env"] if one["name"].startswith("ZELDA_TRACING__")}


def ports(objects: list[Object], policy: str) -> list[int]:
    """The ports that a policy opens towards the outside."""
    [rule] = named(objects, "NetworkPolicy", f"zelda-{policy}")["spec"]["egress"]
    assert rule["to"] == [{"ipBlock": {"cidr": "0.0.0.0/0"}}]
    return [one["port"] for one in rule["ports"]]


def names(objects: list[Object], kind: str) -> set[str]:
    return {one["metadata"]["name"] for one in of_kind(objects, kind)}


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_sends_its_spans_to_the_collector(service: str) -> None:
    objects = traced(endpoint=COLLECTOR, sampleRatio=0.1)
    assert variables(objects, service) == {
        "ZELDA_TRACING__ENDPOINT": COLLECTOR,
        "ZELDA_TRACING__SAMPLE_RATIO": "0.1",
    }
    assert variables(render(profile("openshift")), service) == {}


def test_the_collectors_authority_is_mounted_where_the_setting_says() -> None:
    objects = traced(endpoint="https://collector.example.com", ca={"name": "collector-ca"})
    pod = named(objects, "Deployment", "zelda-exporter")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    file = variables(objects, "exporter")["ZELDA_TRACING__CA_FILE"]
    (mount,) = [one for one in container["volumeMounts"] if file.startswith(one["mountPath"] + "/")]
    (volume,) = [one for one in pod["volumes"] if one["name"] == mount["name"]]
    assert volume["configMap"] == {"name": "collector-ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}


@pytest.mark.parametrize(
    ("tracing", "opened"),
    [
        ({"endpoint": COLLECTOR}, [4318]),
        ({"endpoint": "https://collector.example.com"}, [443]),
        ({"endpoint": "https://tempo.example.com:8443/api/traces/v1/rl"}, [8443]),
        ({"endpoint": "http://collector.observability.svc", "port": 4318}, [80, 4318]),
    ],
)
def test_only_services_reach_the_collector_on_its_port(tracing: dict[str, Any], opened: list[int]) -> None:
    objects = traced(**tracing)
    assert ports(objects, "tracing") == opened
    selector = named(objects, "NetworkPolicy", "zelda-tracing")["spec"]["podSelector"]
    assert selector["matchExpressions"][0]["values"] == list(SERVICES)
    assert "zelda-models-tracing" not in names(objects, "NetworkPolicy")


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the folder with the CRD files is not beside the repository")
def test_models_continue_the_traces_of_requests_and_begin_none() -> None:
    objects = traced(modelsEndpoint=MODELS)
    models = of_kind(objects, "LLMInferenceService")
    assert len(models) == 3
    for model in models:
        assert model["spec"]["tracing"] == {
            "exporterEndpoint": MODELS,
            "sampler": "parentbased_traceidratio",
            "samplerArg": "0",
        }
        assert problems(model, "3.5") == []
    assert ports(objects, "models-tracing") == [4317]
    assert all("tracing" not in one["spec"] for one in of_kind(render(profile("openshift")), "LLMInferenceService"))


def test_without_a_collector_no_way_leads_to_one() -> None:
    assert {"zelda-tracing", "zelda-models-tracing"}.isdisjoint(names(render(profile("prod")), "NetworkPolicy"))
