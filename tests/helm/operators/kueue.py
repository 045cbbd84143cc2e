"""Kueue: what it compares to decide about another admission, and what it writes at an admission.

Paths are in github.com/kubernetes-sigs/kueue at ff69552e79 (2026-08-22, after v0.19).
"""

from typing import Any

from tests.helm.rendering import Object

QUEUE = "kueue.x-k8s.io/queue-name"


class Refused(Exception):
    """Kueue cannot admit the object; the message names the field."""


def pod_sets(one: Object) -> list[tuple[int, Object]]:
    """(number, pod template) of each group. pkg/controller/jobs/raycluster/common.go PodSets."""
    if one["kind"] == "Job":
        return [(1, one["spec"]["template"])]
    spec = one["spec"].get("rayClusterSpec", one["spec"])
    workers = [(group["replicas"], group["template"]) for group in spec.get("workerGroupSpecs", [])]
    return [(1, spec["headGroupSpec"]["template"]), *workers]


def admitted_again(before: Object, after: Object) -> bool:
    """Whether a change stops the running pods and queues the object again: pkg/util/equality/podset.go ComparePodSets
    compares numbers, tolerations, init containers and containers; labels, volumes and node selectors do not count."""
    return QUEUE in after["metadata"]["labels"] and _compared(before) != _compared(after)


def _compared(one: Object) -> list[tuple[Any, ...]]:
    fields = ("tolerations", "initContainers", "containers")
    return [(number, *(pod["spec"].get(name) for name in fields)) for number, pod in pod_sets(one)]


def uncovered(one: Object, queue: Object) -> set[str]:
    """Resources that the pods request and the ClusterQueue does not cover: with one, Kueue never admits the object.
    pkg/scheduler/flavorassigner/flavorassigner.go findFlavorForPodSets."""
    covered = {name for group in queue["spec"]["resourceGroups"] for name in group["coveredResources"]}
    requested = {
        name
        for _, pod in pod_sets(one)
        for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
        for name in container["resources"]["requests"]
    }
    return requested - covered


def admit(one: Object, flavour: Object) -> None:
    """Put the flavour's labels and tolerations into every pod: pkg/podset/podset.go Merge, which refuses a conflict."""
    for _, pod in pod_sets(one):
        selector = pod["spec"].setdefault("nodeSelector", {})
        for key, value in flavour.get("nodeLabels", {}).items():
            if selector.setdefault(key, value) != value:
                raise Refused(f"nodeSelector {key}: {selector[key]} in the pod, {value} in the flavour")
        tolerations = pod["spec"].setdefault("tolerations", [])
        tolerations += [one for one in flavour.get("tolerations", []) if one not in tolerations]
