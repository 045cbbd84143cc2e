"""Other pods of the namespace and clients are denied, except for the documented paths."""

import ast
from typing import Any

import pytest

from tests.helm.operators.network import selects
from tests.helm.rendering import Object, merged, named, of_kind, profile, render
from tests.helm.test_chart_objects import switched
from tests.helm.test_notebooks import FOLDER, code

BUILD, WORKBENCH = {"openshift.io/build.name": "zelda-rlaif-judge-1"}, {"notebook-name": "mine"}


def rendered(name: str, clients: list[str]) -> list[Object]:
    return render(merged(profile(name), {"networkPolicies": {"clients": clients}}))


def policies(objects: list[Object], labels: dict[str, str]) -> set[str]:
    """Names of the policies that select a pod with these labels."""
    found = [one for one in of_kind(objects, "NetworkPolicy") if selects(one["spec"]["podSelector"], labels)]
    return {one["metadata"]["name"].removeprefix("zelda-") for one in found}


@pytest.mark.parametrize("name", ["openshift", "prod"])
def test_builds_reach_sources_packages_and_registry(name: str) -> None:
    objects = rendered(name, [])
    assert policies(objects, BUILD) == {"deny-all", "dns", "builds"}
    policy = named(objects, "NetworkPolicy", "zelda-builds")["spec"]
    assert policy["policyTypes"] == ["Egress"]
    assert policy["egress"] == [{"to": [{"ipBlock": {"cidr": network}} for network in ("0.0.0.0/0", "::/0")]}]


def test_without_builds_no_policy_allows_them() -> None:
    assert policies(render(merged(profile("dev"), switched("off"))), BUILD) == {"deny-all", "dns"}
    off = merged(profile("openshift"), {"networkPolicies": {"enabled": False}})
    assert policies(render(off), BUILD) == set()


def test_only_named_namespaces_reach_the_api() -> None:
    assert "zelda-clients" not in {one["metadata"]["name"] for one in rendered("openshift", [])}
    (rule,) = named(rendered("openshift", ["team-a"]), "NetworkPolicy", "zelda-clients")["spec"]["ingress"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}}]
    assert [port["port"] for port in rule["ports"]] == [8080]


def test_workbenches_reach_the_api_but_other_pods_do_not() -> None:
    objects = rendered("openshift", ["zelda-rl"])
    assert policies(objects, WORKBENCH) == {"deny-all", "dns", "workbenches"}
    (rule,) = named(objects, "NetworkPolicy", "zelda-clients")["spec"]["ingress"]
    (peer,) = rule["from"]
    assert selects(peer["podSelector"], WORKBENCH)
    assert not selects(peer["podSelector"], {"app.kubernetes.io/instance": "zelda"})
    assert policies(rendered("openshift", ["team-a"]), WORKBENCH) == {"deny-all", "dns"}


def test_the_notebook_cluster_has_the_charts_permissions() -> None:
    objects = rendered("openshift", [])
    spec = named(objects, "RayCluster", "zelda-ray")["spec"]
    made = labelled({"headGroupSpec": {"template": {}}, "workerGroupSpecs": [{"template": {}}]})
    for here, there in (
        (made["headGroupSpec"], spec["headGroupSpec"]),
        (made["workerGroupSpecs"][0], spec["workerGroupSpecs"][0]),
    ):
        own, wanted = (policies(objects, one["template"]["metadata"]["labels"]) for one in (here, there))
        assert own == wanted
        assert {"store-clients", "ray"} <= own


def labelled(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec that the notebook's class makes from the spec of its base class."""
    classes: list[ast.stmt] = [
        n for n in ast.parse(code(FOLDER / "codeflare_epoch.ipynb")).body if isinstance(n, ast.ClassDef)
    ]
    base = type("Cluster", (), {"create_resource": lambda _: {"spec": spec}})
    names: dict[str, Any] = {"Cluster": base, "RELEASE": "zelda"}
    exec(compile(ast.Module(classes, []), "notebook", "exec"), names)
    made: dict[str, Any] = names["ReleaseCluster"]().create_resource()["spec"]
    return made
