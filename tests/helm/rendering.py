"""Renders the chart with Helm's engine and returns the objects as data."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import helm_python
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "zelda-rlaif"
RELEASE, NAMESPACE = "zelda", "zelda-rl"
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

Object = dict[str, Any]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def profile(name: str) -> dict[str, Any]:
    """The values of one profile file, as a fresh copy."""
    loaded: dict[str, Any] = yaml.load((CHART / f"values-{name}.yaml").read_text(), _LOADER)
    return loaded


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """`more` over `base`, map by map, as Helm does with several values files."""
    result = dict(base)
    for key, value in more.items():
        inner = result.get(key)
        result[key] = merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return result


def render_files(
    values: Mapping[str, Any], chart: Path = CHART, release: str | None = None, namespace: str | None = None
) -> dict[str, str]:
    """Every file of a release as text. Loads the chart each time, because rendering changes it."""
    with helm_python.Chart.load(chart) as loaded:
        where = namespace or NAMESPACE
        return dict(loaded.render(dict(values), name=release or RELEASE, namespace=where, is_install=True))


def render(
    values: Mapping[str, Any], chart: Path = CHART, release: str | None = None, namespace: str | None = None
) -> list[Object]:
    """All objects of a release."""
    files = render_files(values, chart, release, namespace)
    return [
        parsed
        for name, text in sorted(files.items())
        if name.endswith(".yaml")
        for parsed in yaml.load_all(text, _LOADER)
        if parsed
    ]


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
