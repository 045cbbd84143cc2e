"""A hook's Job runs before the release's policies exist, or follow new values: it needs only what other hooks made."""

from typing import Any

import pytest

from tests.helm.operators.network import selects
from tests.helm.rendering import Object, merged, of_kind, profile, render

BUS = {"mode": "external", "url": "nats://bus:4333", "monitorAddress": "bus:8222", "tls": {"enabled": False}}
EXTERNAL: dict[str, Any] = {"bus": BUS, "store": {"endpoint": "https://minio.storage.svc", "port": 9000}}
DNS = {("UDP", 53), ("TCP", 53), ("UDP", 5353), ("TCP", 5353)}
API_SERVER = {("TCP", 443), ("TCP", 6443)}
HOOKS: dict[str, tuple[dict[str, Any], set[tuple[str, int]]]] = {
    "secrets": (profile("dev"), API_SERVER),
    "provision": (merged(profile("prod"), EXTERNAL), {("TCP", 4333), ("TCP", 443), ("TCP", 9000)}),
}


def events(one: Object) -> set[str]:
    """Helm's events before or after which an object is made; empty for an object of the release."""
    return set(filter(None, one["metadata"].get("annotations", {}).get("helm.sh/hook", "").split(",")))


def weight(one: Object) -> int:
    return int(one["metadata"]["annotations"].get("helm.sh/hook-weight", 0))


def hook_job(objects: list[Object], component: str) -> Object:
    (job,) = (one for one in of_kind(objects, "Job") if one["metadata"]["name"].startswith(f"zelda-{component}"))
    return job


def made_before(objects: list[Object], job: Object) -> list[Object]:
    """The policies that hooks make before this Job, at each of its events."""
    policies = of_kind(objects, "NetworkPolicy")
    return [one for one in policies if events(job) <= events(one) and weight(one) < weight(job)]


@pytest.mark.parametrize("component", HOOKS)
def test_a_hook_reaches_its_servers_among_policies_of_others(component: str) -> None:
    """The namespace may already deny everything: for another release, or with the former addresses."""
    values, expected = HOOKS[component]
    objects = render(values)
    job = hook_job(objects, component)
    labels = job["spec"]["template"]["metadata"]["labels"]
    own = [one["spec"] for one in made_before(objects, job) if selects(one["spec"]["podSelector"], labels)]
    rules = [rule for spec in own for rule in spec["egress"]]
    assert {(port["protocol"], port["port"]) for rule in rules for port in rule["ports"]} == expected | DNS


@pytest.mark.parametrize("component", HOOKS)
def test_a_hooks_policy_ends_with_the_hook(component: str) -> None:
    objects = render(HOOKS[component][0])
    (policy,) = made_before(objects, hook_job(objects, component))
    policies = policy["metadata"]["annotations"]["helm.sh/hook-delete-policy"].split(",")
    assert set(policies) == {"before-hook-creation", "hook-succeeded"}


def test_the_release_gives_a_hook_no_further_permission() -> None:
    for component, (values, _) in HOOKS.items():
        objects = render(values)
        labels = hook_job(objects, component)["spec"]["template"]["metadata"]["labels"]
        kept = [one for one in of_kind(objects, "NetworkPolicy") if not events(one)]
        selecting = {one["metadata"]["name"] for one in kept if selects(one["spec"]["podSelector"], labels)}
        assert selecting == {"zelda-deny-all", "zelda-dns"}


def test_without_policies_no_hook_makes_one() -> None:
    for values, _ in HOOKS.values():
        assert of_kind(render(merged(values, {"networkPolicies": {"enabled": False}})), "NetworkPolicy") == []
