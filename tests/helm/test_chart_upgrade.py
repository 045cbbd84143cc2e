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
