"""The ROM's init container as rendered, run by a shell: it brings the right file and stops the pod for any other."""

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
SOURCES = {
    "secret": ({"name": "zelda-rom", "path": "game.gbc"}, "source/game.gbc"),
    "pvc": ({"name": "roms", "path": "seasons/zelda.gbc"}, "source/seasons/zelda.gbc"),
    "bucket": ({"path": "roms/zelda.gbc"}, ""),
}


def init_container(source: str, digest: str) -> Object:
    values: dict[str, Any] = {"rom": {"source": source, "sha256": digest, **SOURCES[source][0]}}
    spec = named(render(merged(profile("dev"), values)), "Deployment", "zelda-trainer")["spec"]["template"]["spec"]
    (container,) = spec["initContainers"]
    assert {mount["name"] for mount in spec["containers"][0]["volumeMounts"]} >= {"rom"}
    return dict(container)


def bring(source: str, digest: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the container's command with the folder as its root."""
    for name in ("rom", "source/seasons", "store"):
        (folder / name).mkdir(parents=True)
    if SOURCES[source][1]:
        (folder / SOURCES[source][1]).write_bytes(GAME)
    else:
        asyncio.run(local_store(folder / "store").put("models/roms/zelda.gbc", GAME))
    *shell, script = init_container(source, digest)["command"]
    script = script.replace("/rom/game", f"{folder}/rom/game").replace("/source/", f"{folder}/source/")
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ZELDA_STORE__URL": f"file://{folder}/store",
    }
    return subprocess.run(
        [*shell, script], env=environment | {"PYTHONPATH": str(ROOT)}, cwd=ROOT, capture_output=True, text=True
    )


@pytest.mark.parametrize("source", SOURCES)
def test_the_right_rom_is_brought(source: str, tmp_path: Path) -> None:
    done = bring(source, DIGEST, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "rom/game.gbc").read_bytes() == GAME


@pytest.mark.parametrize("source", SOURCES)
def test_another_rom_stops_the_pod(source: str, tmp_path: Path) -> None:
    assert bring(source, "0" * 64, tmp_path).returncode != 0
