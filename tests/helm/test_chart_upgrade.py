"""A release can move from one profile to the next, as in the installation guide."""

import re
from typing import Any

import pytest

from tests.helm.rendering import ROOT, Object, merged, of_kind, profile, render

# What Kubernetes lets an update change in the spec of each kind; it refuses everything else.
CHANGEABLE = {
    "StatefulSet": {
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "persistentVolumeClaimRetentionPolicy",
    },
    "Deployment": {"replicas", "template", "strategy", "minReadySeconds", "revisionHistoryLimit"},
}


def fixed(objects: list[Object]) -> dict[tuple[str, str], dict[str, Any]]:
    """(kind, name) -> the immutable fields."""
    return {
        (one["kind"], one["metadata"]["name"]): {
            key: value for key, value in one["spec"].items() if key not in CHANGEABLE[one["kind"]]
        }
        for one in of_kind(objects, *CHANGEABLE)
    }


def refused(before: list[Object], after: list[Object]) -> set[tuple[str, str]]:
    old, new = fixed(before), fixed(after)
    return {who for who in old.keys() & new.keys() if old[who] != new[who]}


@pytest.mark.parametrize(("first", "then"), [("dev", "openshift"), ("openshift", "prod"), ("dev", "prod")])
def test_a_release_can_upgrade_to_the_next_profile(first: str, then: str) -> None:
    assert refused(render(profile(first)), render(profile(then))) == set()


def test_a_changed_volume_size_is_detected() -> None:
    larger = merged(profile("dev"), {"store": {"embedded": {"volume": {"size": "50Gi"}}}})
    assert refused(render(profile("dev")), render(larger)) == {("StatefulSet", "zelda-s3")}


def step(change: str) -> str:
    """The row of the upgrade guide's last table about a change."""
    table = (ROOT / "docs/upgrade.md").read_text().partition("## What needs an action")[2]
    (row,) = [line for line in table.splitlines() if line.startswith("| ") and change in line.split(" | ")[0]]
    return row


def test_the_guide_removes_the_autoscaler_that_keda_refuses() -> None:
    """KEDA's webhook refuses a second scaler of one Deployment; Helm creates objects before it removes others."""
    before, after = render(profile("openshift")), render(profile("prod"))
    (old,), (new,) = of_kind(before, "HorizontalPodAutoscaler"), of_kind(after, "ScaledObject")
    assert old["spec"]["scaleTargetRef"]["name"] == new["spec"]["scaleTargetRef"]["name"]
    assert f"`oc -n zelda-rl delete hpa {old['metadata']['name']}`" in step("`cpu` to `keda`")


def test_the_guide_replaces_a_route_whose_host_changes() -> None:
    """Its definition says that only a user with the right to update routes/custom-host may change it."""
    before, after = of_kind(render(profile("openshift")), "Route"), of_kind(render(profile("prod")), "Route")
    assert before[0]["spec"].get("host") != after[0]["spec"]["host"]
    assert f"`oc -n zelda-rl delete route {after[0]['metadata']['name']}`" in step("`expose.host` of a Route")


def test_the_guide_restarts_every_server_that_reads_a_secret() -> None:
    row = step("a Secret: certificate, password, key")
    (label, value) = re.findall(r"rollout restart sts -l (\S+)=(\w+)`", row)[0]
    servers = of_kind(render(profile("dev")), "StatefulSet")
    assert {one["metadata"]["name"] for one in servers} == {"zelda-nats", "zelda-s3"}
    assert {one["metadata"]["labels"][label] for one in servers} == {value}


@pytest.mark.parametrize("page", ["runbook", "upgrade", "backup-restore"])
def test_documented_commands_address_the_release(page: str) -> None:
    text = (ROOT / f"docs/{page}.md").read_text()
    commands = re.findall(r"(?:^|`)((?:oc|kubectl|helm) [^`\n]+ [^`\n]+)", text, re.MULTILINE)
    assert commands
    assert [command for command in commands if " -n " not in command] == []


def test_the_guide_removes_what_a_test_leaves_behind() -> None:
    """Helm removes no object of a hook."""
    page = (ROOT / "docs/install-openshift.md").read_text().partition("## Remove")[2]
    marked = [(one["metadata"].get("annotations", {}).get("helm.sh/hook"), one) for one in render(profile("dev"))]
    tests = [one for hook, one in marked if hook == "test"]
    assert {one["kind"] for one in tests} == {"Pod", "ConfigMap"}
    assert [one for one in tests if f"{one['kind'].lower()}/{one['metadata']['name']}" not in page] == []
