"""Prepares a process like its pod: rendered environment and mounted files under a folder."""

import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import certifi

from tests.helm.rendering import CHART, Object, containers, of_kind

Files = dict[str, str]
END = "-----END CERTIFICATE-----\n"
CERTIFICATE = Path(certifi.where()).read_text("ascii", "ignore").partition(END)[0] + END  # the first of many


@dataclass(frozen=True)
class Container:
    """One container as a process: command, environment, and the folder that replaces `/`."""

    command: list[str]
    environment: dict[str, str]
    root: Path

    def path(self, mounted: str) -> Path:
        """Where a path of the container is here."""
        return self.root / mounted.lstrip("/")


def generated_secrets(objects: list[Object]) -> dict[str, Files]:
    """Name -> entries of the Secrets from the hook job's script and environment."""
    jobs = [one for one in of_kind(objects, "Job") if one["metadata"]["name"].endswith("-secrets")]
    if not jobs:
        return {}
    environment = literal(containers(jobs[0]["spec"]["template"])[0])
    made: dict[str, Files] = runpy.run_path(str(CHART / "files" / "make_secrets.py"))["wanted"](environment)
    return made


def literal(container: Object) -> dict[str, str]:
    """Variables with a literal value in the manifest."""
    return {entry["name"]: entry["value"] for entry in container.get("env", []) if "value" in entry}


def materialize(
    objects: list[Object], template: Object, name: str, root: Path, secrets: dict[str, Files] | None = None
) -> Container:
    """The container called `name` of a pod. Missing Secrets get an entry of 32 letters for each item."""
    (container,) = (one for one in containers(template) if one["name"] == name)
    volumes = {volume["name"]: volume for volume in template["spec"].get("volumes", [])}
    mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container.get("volumeMounts", [])}
    known = secrets if secrets is not None else generated_secrets(objects)
    for place, volume in mounts.items():
        folder = root / place.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in _content(objects, volume, known).items():
            (folder / file).write_text(_moved_text(text, list(mounts), root))
    environment = {key: _moved(value, list(mounts), root) for key, value in _environment(container).items()}
    return Container([*container.get("command", []), *container.get("args", [])], environment, root)


def _environment(container: Object) -> dict[str, str]:
    values = {
        entry["name"]: "judge-abc12" if "fieldRef" in entry["valueFrom"] else _from_elsewhere(entry["name"])
        for entry in container.get("env", [])
        if "valueFrom" in entry
    }
    for name, value in literal(container).items():
        for other, text in values.items():
            value = value.replace(f"$({other})", text)
        values[name] = value
    return values


def _from_elsewhere(name: str) -> str:
    return "443" if name.endswith("PORT") else "text-from-elsewhere"


def _moved(value: str, mounts: list[str], root: Path) -> str:
    inside = any(value == place or value.startswith(f"{place}/") for place in mounts)
    return f"{root}{value}" if inside else value


def _moved_text(text: str, mounts: list[str], root: Path) -> str:
    for place in mounts:
        text = text.replace(f" {place}/", f" {root}{place}/")
    return text


def _content(objects: list[Object], volume: Object, secrets: dict[str, Files]) -> Files:
    if "configMap" in volume:
        made: dict[str, Files] = {one["metadata"]["name"]: one["data"] for one in of_kind(objects, "ConfigMap")}
        return _items(volume["configMap"], made.get(volume["configMap"]["name"]), CERTIFICATE)
    if "secret" in volume:
        stand_in = "operator:" + "a" * 32
        return _items(volume["secret"], secrets.get(volume["secret"]["secretName"]), stand_in)
    if "projected" in volume:
        return {"token": "eyJ-a-token", "ca.crt": CERTIFICATE, "namespace": "zelda"}
    return {"game.gbc": "brought by an init container"} if volume["name"] == "rom" else {}


def _items(source: dict[str, Any], entries: Files | None, stand_in: str) -> Files:
    if "items" not in source:
        return dict(entries or {})
    return {item["path"]: stand_in if entries is None else entries[item["key"]] for item in source["items"]}
