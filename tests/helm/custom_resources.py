"""Checks custom resources against the real CRD files as an API server does: defaults, types and pruned fields.

The CRDs are large and not part of the repository; tests skip where the folder beside it is missing.
"""

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tests.helm.rendering import LOADER, ROOT, Object

FOLDER = ROOT.parent / "shared" / "crds"
Schema = dict[str, Any]


@cache
def versions(path: Path) -> dict[str, Schema]:
    """apiVersion -> schema of every served version in one CRD file."""
    document = yaml.load(path.read_text(), LOADER)
    group = document["spec"]["group"]
    return {
        f"{group}/{version['name']}": version["schema"]["openAPIV3Schema"]
        for version in document["spec"]["versions"]
        if version["served"]
    }


def crd_file(one: Object, release: str = "") -> Path:
    """The CRD file of an object's kind; `release` selects the version of a platform."""
    group = one["apiVersion"].partition("/")[0]
    name = f"{group}_{one['kind']}.yaml"
    return FOLDER / "odh" / f"odh-v{release}_{name}" if release else FOLDER / name


def problems(one: Object, release: str = "") -> list[str]:
    """All fields that an API server with this CRD refuses or drops."""
    path = crd_file(one, release)
    if not path.is_file():
        return [f"no CRD file {path.name} for {one['apiVersion']} {one['kind']}"]
    schema = versions(path).get(one["apiVersion"])
    if schema is None:
        return [f"{path.name} does not serve {one['apiVersion']}"]
    body = {key: value for key, value in one.items() if key not in ("apiVersion", "kind", "metadata")}
    dropped = [f"pruned: {where}" for where in _pruned(schema, body, "")]
    complete = copy.deepcopy(one)
    _set_defaults(schema, complete)
    errors = jsonschema.Draft7Validator(_as_json_schema(schema)).iter_errors(complete)
    return dropped + [f"{'/'.join(map(str, error.path))}: {error.message[:200]}" for error in errors]


def _as_json_schema(node: Any) -> Any:
    if isinstance(node, list):
        return [_as_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {key: _as_json_schema(value) for key, value in node.items() if key != "format"}
    if result.get("x-kubernetes-int-or-string"):
        result.pop("type", None)
        result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if result.pop("nullable", False) is True and isinstance(result.get("type"), str):
        result["type"] = [result["type"], "null"]
    return result


def _children(schema: Schema, body: Any) -> Iterator[tuple[Schema | None, Any, str]]:
    if isinstance(body, dict):
        extra = schema.get("additionalProperties")
        for key, value in body.items():
            yield schema.get("properties", {}).get(key, extra if isinstance(extra, dict) else None), value, f".{key}"
    elif isinstance(body, list):
        for index, value in enumerate(body):
            yield schema.get("items", {}), value, f"[{index}]"


def _pruned(schema: Schema, body: Any, where: str) -> Iterator[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties") is True:
        return
    for child, value, step in _children(schema, body):
        if child is None:
            yield where + step
        else:
            yield from _pruned(child, value, where + step)


def _set_defaults(schema: Schema, body: Any) -> None:
    if isinstance(body, dict):
        for key, child in schema.get("properties", {}).items():
            if "default" in child:
                body.setdefault(key, copy.deepcopy(child["default"]))
    for child, value, _ in list(_children(schema, body)):
        if child is not None:
            _set_defaults(child, value)
