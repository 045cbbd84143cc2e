"""Argo CD applications have images, permissions and quota, and share neither a store nor an address."""

import re
from collections import defaultdict
from itertools import combinations
from typing import Any

import pytest
import yaml

from tests.helm.pods import literal
from tests.helm.quantities import amount
from tests.helm.rendering import CHART, ROOT, Object, containers, merged, named, of_kind, pod_templates, profile, render
from tests.helm.test_chart_objects import switched
from tests.helm.test_chart_queue import asked

APPLICATIONS = {path.stem: path for path in (ROOT / "deploy/argocd/applications").glob("*.yaml")}
GUIDE = (ROOT / "deploy/README.md").read_text()


def application(name: str) -> Object:
    (one,) = yaml.safe_load_all(APPLICATIONS[name].read_text())
    return dict(one)


def nested(path: str, value: Any) -> dict[str, Any]:
    """`a.b` and a value in Helm's --set syntax."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return dict(value)


def values_of(name: str) -> dict[str, Any]:
    """The values file of an application with its parameters."""
    helm = application(name)["spec"]["source"]["helm"]
    values: dict[str, Any] = yaml.safe_load((CHART / helm["valueFiles"][0]).read_text())
    for parameter in helm["parameters"]:
        values = merged(values, nested(parameter["name"], parameter["value"]))
    return values


@pytest.mark.parametrize(("one", "other"), list(combinations(sorted(APPLICATIONS), 2)))
def test_two_applications_share_neither_store_nor_host(one: str, other: str) -> None:
    stores, hosts = list[tuple[str, str]](), list[str]()
    for name in (one, other):
        objects = render(values_of(name), namespace=f"zelda-{name}")
        coordinator = named(objects, "Deployment", "zelda-coordinator")["spec"]["template"]["spec"]["containers"][0]
        variables = literal(coordinator)
        stores.append((variables["ZELDA_STORE__ENDPOINT"], variables["ZELDA_STORE__URL"]))
        hosts += [route["spec"]["host"] for route in of_kind(objects, "Route") if "host" in route["spec"]]
    assert stores[0] != stores[1], "one coordinator would lead the runs of both"
    assert len(hosts) == len(set(hosts)), "OpenShift admits one Route of a host"


def test_staging_runs_in_the_shape_of_production() -> None:
    staging, prod = values_of("staging"), values_of("prod")
    assert staging["store"] == {**prod["store"], "prefix": "zelda-staging"}
    assert staging["expose"] == {**prod["expose"], "host": "zelda-staging.apps.example.com"}
    assert {key for key in prod if staging[key] != prod[key]} == {"store", "expose"}


@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_uses_the_built_images(name: str) -> None:
    values = values_of(name)
    taken = yaml.safe_load((ROOT / "deploy/components/images/kustomization.yaml").read_text())["images"]
    built = {f"{image['newName']}:{image['newTag']}" for image in taken}
    used = {c["image"] for _, pod in pod_templates(render(values)) for c in containers(pod) if "zelda-" in c["image"]}
    assert used == built


@pytest.mark.parametrize("name", APPLICATIONS)
def test_argo_may_use_its_namespace_and_pods_may_pull_images(name: str) -> None:
    spec = application(name)["spec"]
    labels = spec["syncPolicy"]["managedNamespaceMetadata"]["labels"]
    assert labels["argocd.argoproj.io/managed-by"] == "openshift-gitops"
    (names,) = re.findall(r"for e in (.+); do\n  oc policy add-role-to-group system:image-puller", GUIDE)
    assert spec["destination"]["namespace"] in [f"zelda-{one}" for one in names.split()]


def test_the_documented_quota_covers_all_namespaces() -> None:
    (names,) = re.findall(r"kueue\.admin\.namespaces=\{(.+)\}", GUIDE)
    values = merged(profile("openshift"), switched("on"))
    admin = {"kueue": {"admin": {"enabled": True, "namespaces": names.split(",")}}}
    assert selected(render(merged(values, admin))) >= {
        application(name)["spec"]["destination"]["namespace"] for name in APPLICATIONS
    }
    assert selected(render(merged(values, {"kueue": {"admin": {"enabled": True}}}))) == {"zelda-rl"}


def test_the_documented_quota_holds_all_environments_together() -> None:
    needed: dict[str, float] = defaultdict(float)
    for name in APPLICATIONS:
        helm = application(name)["spec"]["source"]["helm"]
        values = merged(yaml.safe_load((CHART / helm["valueFiles"][0]).read_text()), switched("on"))
        for what, much in asked(of_kind(render(values), "RayCluster")).items():
            needed[what] += much
    quota = dict(re.findall(r"kueue\.admin\.(cpu|memory)=(\w+)", GUIDE))
    assert {what: much for what, much in needed.items() if much > amount(quota[what])} == {}
    assert f"({needed['cpu']:.0f} cores and {needed['memory'] / 2**30:.0f} GiB when all three run)" in GUIDE


def selected(objects: list[Object]) -> set[str]:
    """Namespaces whose workloads the ClusterQueue admits."""
    (queue,) = of_kind(objects, "ClusterQueue")
    (expression,) = queue["spec"]["namespaceSelector"]["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("kubernetes.io/metadata.name", "In")
    return set(expression["values"])
