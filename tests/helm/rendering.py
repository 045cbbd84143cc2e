"""Renders the chart with Helm's engine and returns the objects as data."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from deploy.generate import rendering
from deploy.generate.rendering import LOADER as LOADER
from deploy.generate.rendering import NAMESPACE as NAMESPACE
from deploy.generate.rendering import RELEASE as RELEASE
from deploy.generate.rendering import Object as Object
from deploy.generate.rendering import merged as merged

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "zelda-rlaif"
PROFILES = ("dev", "openshift", "prod")
APIS = (
    "route",
    "monitoring",
    "grafana",
    "keda",
    "kueue",
    "ray",
    "llmInferenceService",
    "inferenceObjective",
    "objectBucketClaim",
)


def profile(name: str) -> dict[str, Any]:
    """The values of one profile file, as a fresh copy."""
    loaded: dict[str, Any] = yaml.load((CHART / f"values-{name}.yaml").read_text(), LOADER)
    return loaded


def render_files(
    values: Mapping[str, Any], chart: Path = CHART, release: str | None = None, namespace: str | None = None
) -> dict[str, str]:
    """Every file of a release as text."""
    return rendering.render_files(chart, values, release or RELEASE, namespace or NAMESPACE)


def render(
    values: Mapping[str, Any], chart: Path = CHART, release: str | None = None, namespace: str | None = None
) -> list[Object]:
    """All objects of a release."""
    return rendering.all_objects(render_files(values, chart, release, namespace))


def of_kind(objects: list[Object], *kinds: str) -> list[Object]:
    """The objects of some kinds."""
    return [one for one in objects if one["kind"] in kinds]


def named(objects: list[Object], kind: str, name: str) -> Object:
    """The one object of this kind and name."""
    found = [one for one in of_kind(objects, kind) if one["metadata"]["name"] == name]
    if len(found) != 1:
        raise LookupError(f"{kind} {name}: {len(found)} of them; there are {[o['metadata']['name'] for o in objects]}")
    return found[0]


def pod_templates(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """(owner, {metadata, spec}) of every pod template, Ray's included."""
    for one in objects:
        owner = f"{one['kind']}/{one['metadata']['name']}"
        if one["kind"] == "Pod":
            yield owner, one
        elif one["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield owner, one["spec"]["template"]
        elif one["kind"] in ("RayCluster", "RayJob"):
            cluster = one["spec"].get("rayClusterSpec", one["spec"])
            yield f"{owner}/head", cluster["headGroupSpec"]["template"]
            for group in cluster.get("workerGroupSpecs", []):
                yield f"{owner}/{group['groupName']}", group["template"]


def containers(template: Object) -> list[Object]:
    """Init and main containers of a pod."""
    return [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]
