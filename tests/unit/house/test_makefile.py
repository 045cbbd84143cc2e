"""The developer's interface: a fresh machine takes whichever Python is there, and `test-llm` runs tests."""

import os
import shlex
import shutil
import subprocess
import tomllib
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
    assert shlex.split(line)[2].rpartition("/")[2] == taken


def test_every_declared_marker_marks_a_test() -> None:
    """`make test-llm` runs the tests of one marker: without any it would test nothing."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    tests = [path.read_text() for path in ROOT.glob("tests/**/test_*.py") if path != Path(__file__)]
    for marker in (line.partition(":")[0] for line in declared):
        assert any(f"mark.{marker}" in text for text in tests), marker


@pytest.mark.parametrize("named", [True, False])
def test_a_python_in_a_folder_with_a_space_is_found(named: bool, tmp_path: Path) -> None:
    folder = tmp_path / "my tools"
    folder.mkdir()
    chosen = [f"PYTHON={folder}/python3.12"] if named else []
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "demo", *chosen],
        cwd=ROOT,
        env=machine(folder, ("python3.12",)),
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = [line for line in done.stdout.splitlines() if ".ci/setup" in line]
    assert shlex.split(line)[2] == (f"{folder}/python3.12" if named else "python3.12")
