"""The dev profile runs as an unknown user on a read-only tree, and `helm test` passes."""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from deploy.watch.__main__ import addresses
from deploy.watch.prometheus import running_prometheus
from deploy.watch.queries import query_results, table
from tests.helm.release import SERVICES, USER, Release, impossible, installed
from tests.helm.rendering import ROOT, Object, named

FOLDER = ROOT / "deploy/notebooks"
EXECUTE = """import sys, nbclient, nbformat
nbclient.NotebookClient(nbformat.read(sys.argv[1], 4), timeout=200, kernel_name="python3").execute()"""
WHY = impossible()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(WHY is not None, reason=str(WHY)),
]


async def test_the_rendered_release_plays_an_epoch_as_any_user(tmp_path: Path) -> None:
    async with installed() as release:
        with (
            running_prometheus(addresses(release.folder), tmp_path)
            if shutil.which("prometheus")
            else nullcontext() as watcher
        ):
            printed = await release.finish("test", release.container("test", helm_test(release.objects)))
            await asyncio.to_thread(execute, FOLDER / "drive_run.ipynb", release)
            found = [] if watcher is None else list(query_results(watcher))
        assert printed.rstrip().endswith("finished")
        assert {name: release.processes[name].returncode for name in SERVICES} == dict.fromkeys(SERVICES)
        assert written_outside(release) == []
        for name in SERVICES:
            assert "Permission denied" not in release.log(name)
            assert all(word not in release.log(name) for word in passwords(release)), f"{name} logs a secret"

        assert [one for one in found if one.missing] == [], table(found)


def execute(notebook: Path, release: Release) -> None:
    """Run a notebook's cells in a kernel, against the API of the release; raises at the first error."""
    token = release.folder / "operator-token"
    token.write_text(release.secrets["zelda-api"]["operator-token"])
    api = release.local("http://zelda-coordinator.zelda-rl.svc:8080")
    environment = {**os.environ, "ZELDA_API": api, "ZELDA_TOKEN_FILE": str(token), "MPLBACKEND": "agg"}
    command = [sys.executable, "-W", "ignore", "-c", EXECUTE, str(notebook)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-3000:]


def helm_test(objects: list[Object]) -> Object:
    return named(objects, "Pod", "zelda-test")


def passwords(release: Release) -> list[str]:
    return [word for entries in release.secrets.values() for name, word in entries.items() if "tokens" not in name]


def written_outside(release: Release) -> list[str]:
    """Files that the other user wrote outside of writable volumes."""
    found = []
    for path in release.folder.rglob("*"):
        if path.lstat().st_uid == USER and not _in_scratch(path.relative_to(release.folder)):
            found.append(str(path))
    return found + [str(path) for path in (ROOT, ROOT / "services", ROOT / "shared") if _writable(path)]


def _in_scratch(path: Path) -> bool:
    return path.parts[1:2] == ("tmp",) or path.parts[1:3] == ("dev", "shm")


def _writable(path: Path) -> bool:
    mode = path.stat()
    return bool(
        mode.st_uid == USER or mode.st_mode & stat.S_IWOTH or (mode.st_gid == 0 and mode.st_mode & stat.S_IWGRP)
    )
