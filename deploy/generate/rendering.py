"""The chart with Helm's engine, rendered as a release on OpenShift: files as text, and their objects as data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import helm_python
import yaml

RELEASE, NAMESPACE, PROFILE = "zelda", "zelda-rl", "values-openshift.yaml"
# libyaml's parser, where PyYAML has it: ten times as fast.
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Object = dict[str, Any]


def render_files(
    chart: Path, values: Mapping[str, Any], release: str = RELEASE, namespace: str = NAMESPACE
) -> dict[str, str]:
    """Path -> text of every file of a release. Loads the chart each time, because rendering changes it."""
    with helm_python.Chart.load(chart) as loaded:
        return dict(loaded.render(dict(values), name=release, namespace=namespace, is_install=True))


def objects_by_file(files: Mapping[str, str]) -> dict[str, list[Object]]:
    """Path of each manifest among rendered files -> its objects; in the order of paths."""
    manifests = sorted(path for path in files if path.endswith(".yaml"))
    return {path: [one for one in yaml.load_all(files[path], LOADER) if one] for path in manifests}


def all_objects(files: Mapping[str, str]) -> list[Object]:
    """The objects of all manifests among rendered files."""
    return [one for objects in objects_by_file(files).values() for one in objects]


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """`more` over `base`, map by map, as Helm does with several values files."""
    result = dict(base)
    for key, value in more.items():
        inner = result.get(key)
        result[key] = merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return result
