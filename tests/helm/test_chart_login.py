"""The log-in proxy: the life of its token, the way to the cluster's OAuth server, and the Route that leads to it."""

from collections.abc import Iterator

import pytest

from tests.helm.rendering import CHART, Object, merged, named, of_kind, pod_templates, profile, render, render_files
from tests.helm.test_chart_objects import EVERYTHING, switched

HOUR_S, MONTH_S = 3600, 30 * 24 * 3600
TIMEOUT = "haproxy.router.openshift.io/timeout"


def token_lives(objects: list[Object]) -> Iterator[tuple[str, str, int]]:
    """(owner, volume, seconds) of every projected token."""
    for owner, pod in pod_templates(objects):
        for volume in pod["spec"].get("volumes", []):
            for source in volume.get("projected", {}).get("sources", []):
                if "serviceAccountToken" in source:
                    yield owner, volume["name"], source["serviceAccountToken"]["expirationSeconds"]


@pytest.mark.parametrize("name", ["openshift", "prod"])
def test_users_can_log_in_an_hour_after_the_proxys_start(name: str) -> None:
    """The proxy reads the token once (openshift/oauth-proxy, providers/openshift/provider.go LoadDefaults) and sends it
    as its secret with each log-in. The OAuth server lets the API server review it (openshift/oauth-server,
    pkg/osinserver/registrystorage/storage.go ClientSecretMatches), which refuses one that has expired."""
    values = merged(merged(merged(profile(name), switched("on")), EVERYTHING), {"planner": {"enabled": True}})
    values = merged(values, {"jobs": {"epoch": {"enabled": False}}})
    lives = {(owner, volume): seconds for owner, volume, seconds in token_lives(render(values))}
    assert lives.pop(("Deployment/zelda-coordinator", "account-token")) >= MONTH_S
    assert len(lives) >= 2  # of those who call models: they read the file for every request
    assert set(lives.values()) == {HOUR_S}


def test_the_proxy_reaches_the_oauth_server_behind_a_router() -> None:
    """Where the load balancer's address is the cluster's own, the connection ends at a router's pod."""
    narrow = {"networkPolicies": {"externalCidr": "10.20.0.0/16"}}
    egress = named(render(merged(profile("prod"), narrow)), "NetworkPolicy", "zelda-login")["spec"]["egress"]
    router = {"namespaceSelector": {"matchLabels": {"network.openshift.io/policy-group": "ingress"}}}
    assert [[port["port"] for port in rule["ports"]] for rule in egress if router in rule["to"]] == [[443]]
    assert "zelda-login" not in {one["metadata"]["name"] for one in of_kind(render(profile("dev")), "NetworkPolicy")}


def test_the_proxy_waits_as_long_as_the_route() -> None:
    """Its own limit is 30 seconds until the first header: a deletion of a long run takes more."""
    objects = render(profile("openshift"))
    (proxy,) = (
        one
        for one in named(objects, "Deployment", "zelda-coordinator")["spec"]["template"]["spec"]["containers"]
        if one["name"] == "oauth-proxy"
    )
    (route,) = of_kind(objects, "Route")
    assert f"-upstream-timeout={route['metadata']['annotations'][TIMEOUT]}" in proxy["args"]


@pytest.mark.parametrize(("own", "expected"), [({}, "1h"), ({TIMEOUT: "4h"}, "4h"), ({"team": "a"}, "1h")])
def test_values_may_set_another_timeout_of_the_route(own: dict[str, str], expected: str) -> None:
    values = merged(profile("openshift"), {"expose": {"annotations": own}})
    (route,) = of_kind(render(values), "Route")
    assert route["metadata"]["annotations"] == {**own, TIMEOUT: expected}
    text = render_files(values)[f"{CHART.name}/templates/expose.yaml"]
    assert text.count(TIMEOUT) == 1, "Kustomize refuses a key that is there twice"
