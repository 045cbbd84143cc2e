"""What an image installs: the closure of each extra, followed through the metadata of the installed packages."""

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cli.__main__ import EXTRAS, OWN_PACKAGES

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


@cache
def installed() -> Mapping[str, list[str]]:
    """The distributions of each imported package; the metadata of all that is installed are read for it."""
    return packages_distributions()


def distributions(package: str) -> set[str]:
    """Names of the distributions that install an imported package."""
    return {canonicalize_name(name) for name in installed()[package]}


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_extra_that_a_missing_package_names_contains_it(extra: str) -> None:
    brought = closure(Requirement(f"zelda-rlaif[{extra}]"), set())
    assert [package for package in EXTRAS[extra] if not distributions(package) & brought] == []


def imported(path: Path) -> Iterator[str]:
    """The packages that a module imports, also within its functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.partition(".")[0]


def test_every_package_that_may_be_missing_names_its_extra() -> None:
    always = closure(Requirement("zelda-rlaif"), set())
    known = {package for packages in EXTRAS.values() for package in packages}
    modules = (path for package in OWN_PACKAGES for path in (ROOT / package).rglob("*.py"))
    others = {name for path in modules for name in imported(path)} - sys.stdlib_module_names - set(OWN_PACKAGES)
    assert {name for name in others if not distributions(name) & always} == known


@pytest.mark.parametrize("package", ["services", "shared", "cli", "studies", "bramble"])
def test_every_folder_of_modules_is_installed(package: str) -> None:
    """setuptools leaves out a folder without `__init__.py`; git leaves out one that .gitignore names."""
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
    ignored = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split()}
    assert ignored & {folder.name for folder in folders} == set()
