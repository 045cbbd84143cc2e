"""Workloads fit the quota, and the administrator's objects are not part of the release."""

import re
from collections import defaultdict

import pytest
import yaml

from tests.helm.operators import kueue
from tests.helm.quantities import amount
from tests.helm.rendering import CHART, PROFILES, ROOT, Object, merged, of_kind, profile, render, render_files
from tests.helm.test_chart_objects import EVERYTHING, switched

ADMIN = {"kueue": {"admin": {"enabled": True}}}
QUOTA = {"ResourceFlavor", "ClusterQueue"}
GPU, GPUS_OF_A_NODE = "nvidia.com/gpu", 8  # of the machine type in deploy/machinesets/llm-inference.yaml


def test_the_administrator_file_contains_no_release_object() -> None:
    (name,) = re.findall(r"kueue\.admin\.enabled=true -s (\S+)", (ROOT / "docs/install-openshift.md").read_text())
    values = merged(profile("openshift"), switched("on"))
    text = render_files(merged(values, ADMIN))[f"{CHART.name}/{name}"]
    assert {one["kind"] for one in yaml.safe_load_all(text) if one} == QUOTA
    assert not QUOTA & {one["kind"] for one in render(values)}


def asked(objects: list[Object]) -> dict[str, float]:
    """Requests of all pods of Ray and models at their maximum number."""
    total: dict[str, float] = defaultdict(float)
    for one in objects:
        for number, pod in groups(one["spec"].get("rayClusterSpec", one["spec"])):
            for container in pod["containers"]:
                for name, quantity in container["resources"]["requests"].items():
                    total[name] += number * amount(quantity)
    return total


def groups(spec: Object) -> list[tuple[int, Object]]:
    """(number, spec) of the pods of a Ray cluster or of a model."""
    if "headGroupSpec" not in spec:
        pod = spec["template"]
        return [(spec.get("replicas", 1), pod.get("spec", pod))]
    workers = [(group["maxReplicas"], group["template"]["spec"]) for group in spec.get("workerGroupSpecs", [])]
    return [(1, spec["headGroupSpec"]["template"]["spec"]), *workers]


@pytest.mark.parametrize("name", PROFILES)
def test_everything_that_waits_for_quota_fits_the_quota(name: str) -> None:
    values = merged(
        merged(merged(profile(name), switched("on")), {name: EVERYTHING[name] for name in ("services", "ray", "jobs")}),
        ADMIN,
    )
    objects = render(values)
    queued = [one for one in objects if "kueue.x-k8s.io/queue-name" in one["metadata"]["labels"]]
    assert {one["kind"] for one in queued} <= {"RayCluster", "RayJob", "Job"}
    ((group,),) = (one["spec"]["resourceGroups"] for one in of_kind(objects, "ClusterQueue"))
    quota = {one["name"]: amount(one["nominalQuota"]) for one in group["flavors"][0]["resources"]}
    assert {what: (much, quota.get(what)) for what, much in asked(queued).items() if much > quota.get(what, 0)} == {}


@pytest.mark.parametrize("gpus", [0, 1])
@pytest.mark.parametrize("name", PROFILES)
def test_the_queue_covers_every_requested_resource(name: str, gpus: int) -> None:
    own = merged(EVERYTHING, {"ray": {"head": {"gpus": gpus}}, "kueue": {"admin": {"enabled": True, "gpus": 2 * gpus}}})
    objects = render(merged(merged(profile(name), switched("on")), own))
    (queue,) = of_kind(objects, "ClusterQueue")
    queued = [one for one in objects if kueue.QUEUE in one["metadata"]["labels"]]
    assert len(queued) == 4
    assert {one["metadata"]["name"]: found for one in queued if (found := kueue.uncovered(one, queue))} == {}
    (group,) = queue["spec"]["resourceGroups"]
    quota = {one["name"]: amount(one["nominalQuota"]) for one in group["flavors"][0]["resources"]}
    assert list(quota) == group["coveredResources"], "Kueue refuses a queue whose two lists differ"
    assert asked(queued)[GPU] <= quota.get(GPU, 0)


def test_the_example_quota_places_ray_pods_on_training_nodes() -> None:
    path = ROOT / "deploy/machinesets/game-training.yaml"
    (values,) = re.findall(r"^#   (kueue: .+)$", path.read_text(), re.MULTILINE)
    objects = render(merged(merged(merged(profile("openshift"), switched("on")), ADMIN), yaml.safe_load(values)))
    (flavour,) = (one["spec"] for one in of_kind(objects, "ResourceFlavor"))
    (node,) = (one["spec"]["template"]["spec"] for one in yaml.safe_load_all(path.read_text()))
    assert flavour["nodeLabels"].items() <= node["metadata"]["labels"].items()
    assert [(one["key"], one["operator"]) for one in flavour["tolerations"]] == [
        (taint["key"], "Exists") for taint in node["taints"]
    ]


def test_docs_and_example_nodes_match_the_profiles_gpus() -> None:
    text = (ROOT / "docs/install-openshift.md").read_text()
    (node,) = yaml.safe_load_all((ROOT / "deploy/machinesets/llm-inference.yaml").read_text())
    assert node["spec"]["template"]["spec"]["providerSpec"]["value"]["instanceType"] == "p4de.24xlarge"
    for name in ("openshift", "prod"):
        models = of_kind(render(profile(name)), "LLMInferenceService")
        gpus = int(asked(models)[GPU])
        assert f"{gpus} for {name}" in text
        assert gpus <= node["spec"]["replicas"] * GPUS_OF_A_NODE


def test_the_guide_names_the_kueue_that_serves_the_charts_objects() -> None:
    """test_chart_cli.py holds that the chart takes the older version where the cluster serves nothing newer."""
    made = of_kind(render(merged(profile("openshift"), switched("on"))), "LocalQueue", "ClusterQueue", "ResourceFlavor")
    assert {one["apiVersion"] for one in made} == {"kueue.x-k8s.io/v1beta2"}
    page = (ROOT / "docs/install-openshift.md").read_text()
    sentence = "the chart's objects are `kueue.x-k8s.io/v1beta2`, or `v1beta1` before release 1.3"
    assert f"Red Hat build of Kueue ({sentence})" in page
