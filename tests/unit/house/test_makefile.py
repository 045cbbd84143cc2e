"""The one command of a fresh machine takes whichever of the two Pythons is there."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def machine(directory: Path, pythons: tuple[str, ...]) -> dict[str, str]:
    """An environment in which `make` finds a shell, and these Pythons."""
    for tool in ("make", "bash", "sh"):
        (directory / tool).symlink_to(str(shutil.which(tool)))
    for python in pythons:
        (directory / python).touch(mode=0o755)
    return {"PATH": str(directory), "HOME": os.environ.get("HOME", "/")}


@pytest.mark.parametrize(
    ("pythons", "taken"),
    [(("python3.12",), "python3.12"), (("python3.11", "python3.12"), "python3.11"), ((), "python3.11")],
)
def test_the_python_that_is_there_makes_the_environment(pythons: tuple[str, ...], taken: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "demo"],
        cwd=ROOT,
        env=machine(tmp_path, pythons),
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = [line for line in done.stdout.splitlines() if ".ci/setup" in line]
    assert line.split()[2].rpartition("/")[2] == taken
