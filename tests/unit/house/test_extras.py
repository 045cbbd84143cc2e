"""What an image installs: the closure of each extra, followed through the metadata of the installed packages."""

from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
HEAVY = {"torch", "ray", "pyboy", "gymnasium"}


def closure(requirement: Requirement, seen: set[tuple[str, str]]) -> set[str]:
    """Names of every distribution that installing `requirement` brings, itself included."""
    name = canonicalize_name(requirement.name)
    names: set[str] = {name}
    for extra in ("", *requirement.extras):
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for line in requires(name) or []:
            child = Requirement(line)
            if child.marker is None or child.marker.evaluate({"extra": extra}):
                names |= closure(child, seen)
    return names


@pytest.mark.parametrize("extra", ["judge", "coordinator", "cli"])
def test_light_services_install_without_heavy_packages(extra: str) -> None:
    assert closure(Requirement(f"zelda-rlaif[{extra}]"), set()) & HEAVY == set()


def test_exporter_installs_the_emulator_but_neither_torch_nor_ray() -> None:
    assert closure(Requirement("zelda-rlaif[exporter]"), set()) & HEAVY == {"pyboy"}


def test_trainer_installs_its_training_libraries() -> None:
    assert closure(Requirement("zelda-rlaif[trainer]"), set()) >= HEAVY


@pytest.mark.parametrize("package", ["services", "shared", "cli", "studies", "bramble"])
def test_every_folder_of_modules_is_installed(package: str) -> None:
    """setuptools leaves out a folder without `__init__.py`; git leaves out one that .gitignore names."""
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
    ignored = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split()}
    assert ignored & {folder.name for folder in folders} == set()
