"""The dev profile really runs: processes of a user nobody knows, on a tree they cannot write; `helm test` passes."""

import stat
from pathlib import Path

import pytest

from tests.helm.release import SERVICES, USER, Release, impossible, installed
from tests.helm.rendering import ROOT, Object, named

WHY = impossible()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(WHY is not None, reason=str(WHY)),
]


async def test_the_rendered_release_plays_an_epoch_as_any_user() -> None:
    async with installed() as release:
        told = await release.finish("test", release.container("test", helm_test(release.objects)))
        assert told.rstrip().endswith("finished")
        assert {name: release.processes[name].returncode for name in SERVICES} == dict.fromkeys(SERVICES)
        assert written_outside(release) == []
        for name in SERVICES:
            assert "Permission denied" not in release.log(name)
            assert all(word not in release.log(name) for word in passwords(release)), f"{name} logs a secret"


def helm_test(objects: list[Object]) -> Object:
    return named(objects, "Pod", "zelda-test")


def passwords(release: Release) -> list[str]:
    return [word for entries in release.secrets.values() for name, word in entries.items() if "tokens" not in name]


def written_outside(release: Release) -> list[str]:
    """Files of the other user that lie anywhere but in an empty directory of a pod, or a tree that it may change."""
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
