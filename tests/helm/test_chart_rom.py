"""The rendered init container copies the right ROM and stops the pod for any other file.

With the ROM it brings the saved state at which its runs begin.
"""

import asyncio
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.store.object_store import local_store
from tests.helm.rendering import ROOT, Object, merged, named, profile, render

GAME = b"the bytes of a game that somebody owns"
DIGEST = hashlib.sha256(GAME).hexdigest()
STATE = b"where the hero can walk"
SOURCES: dict[str, dict[str, Any]] = {
    "secret": {"name": "zelda-rom", "path": "game.gbc"},
    "pvc": {"name": "roms", "path": "seasons/zelda.gbc"},
    "bucket": {"path": "roms/zelda.gbc"},
}


def trainer(source: str, digest: str, start: dict[str, str] | None = None) -> Object:
    """The pod of the trainer."""
    values: dict[str, Any] = {"rom": {"source": source, "sha256": digest, **SOURCES[source], "start": start or {}}}
    deployment = named(render(merged(profile("dev"), values)), "Deployment", "zelda-trainer")
    return dict(deployment["spec"]["template"]["spec"])


def bring(pod: Object, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the init container's command with a folder that replaces its root and volumes."""
    (container,) = pod["initContainers"]
    for mount in container["volumeMounts"]:
        for name in ("", "seasons") if mount["name"] in ("rom", "rom-source", "start-source") else ():
            (folder / mount["mountPath"].lstrip("/") / name).mkdir(parents=True, exist_ok=True)
    for volume, path, content in (
        ("rom-source", "game.gbc", GAME),
        ("rom-source", "seasons/zelda.gbc", GAME),
        ("start-source", "field.state", STATE),
        ("start-source", "seasons/field.state", STATE),
    ):
        if (folder / volume).exists():
            (folder / volume / path).write_bytes(content)
    store = local_store(folder / "store")
    asyncio.run(store.put("models/roms/zelda.gbc", GAME))
    asyncio.run(store.put("models/roms/field.state", STATE))
    *shell, script = container["command"]
    for root in ("rom/", "rom-source/", "start-source/"):
        script = script.replace(f" /{root}", f" {folder}/{root}")
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ZELDA_STORE__URL": f"file://{folder}/store",
    }
    return subprocess.run(
        [*shell, script], env=environment | {"PYTHONPATH": str(ROOT)}, cwd=ROOT, capture_output=True, text=True
    )


def variables(pod: Object) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in pod["containers"][0]["env"]}


@pytest.mark.parametrize("source", SOURCES)
def test_the_right_rom_is_copied(source: str, tmp_path: Path) -> None:
    pod = trainer(source, DIGEST)
    done = bring(pod, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "rom/game.gbc").read_bytes() == GAME
    assert not (tmp_path / "rom/start.state").exists()
    assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} >= {"rom"}
    assert variables(pod)["ZELDA_DRIVER__ROM"] == "/rom/game.gbc"
    assert "ZELDA_DRIVER__START_STATE" not in variables(pod)


@pytest.mark.parametrize("source", SOURCES)
def test_another_rom_stops_the_pod(source: str, tmp_path: Path) -> None:
    assert bring(trainer(source, "0" * 64), tmp_path).returncode != 0


@pytest.mark.parametrize(
    ("source", "start"),
    [
        ("secret", {"name": "zelda-start", "path": "field.state"}),
        ("pvc", {"path": "seasons/field.state"}),
        ("bucket", {"path": "roms/field.state"}),
    ],
)
def test_the_start_state_is_copied_with_the_rom(source: str, start: dict[str, str], tmp_path: Path) -> None:
    pod = trainer(source, DIGEST, start)
    done = bring(pod, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "rom/start.state").read_bytes() == STATE
    assert variables(pod)["ZELDA_DRIVER__START_STATE"] == "/rom/start.state"
    names = {volume["name"]: volume for volume in pod["volumes"]}
    assert ("start-source" in names) == (source != "bucket")
    if source == "secret":
        assert names["start-source"]["secret"]["secretName"] == "zelda-start"
        assert names["rom-source"]["secret"]["secretName"] == "zelda-rom"


def test_the_exporter_gets_the_rom_and_needs_no_start() -> None:
    values: dict[str, Any] = {
        "rom": {"source": "pvc", "sha256": DIGEST, **SOURCES["pvc"], "start": {"path": "field.state"}}
    }
    pod = named(render(merged(profile("dev"), values)), "Deployment", "zelda-exporter")["spec"]["template"]["spec"]
    assert variables(pod)["ZELDA_ROM__FILE"] == "/rom/game.gbc"
    assert "ZELDA_DRIVER__START_STATE" not in variables(pod)
