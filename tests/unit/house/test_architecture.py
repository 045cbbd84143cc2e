"""Every file, class and function that docs/architecture.md names exists, and each walk fits a screen."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
FOLDERS = ("services/", "shared/", "cli/", "bramble/", "bench/", "deploy/", "docs/", "studies/", "tests/")
REFERENCE = re.compile(r"`([\w./]+\.py)`((?:\s+`[A-Za-z_][\w.]*`)+)")
WALKS = dict(re.findall(r"^### (One .+)\n\n((?:\d+\. .+\n)+)", TEXT, re.MULTILINE))


def defined(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Classes, functions, methods and attributes; members as `Class.member`."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from defined(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield prefix + node.target.id
        elif isinstance(node, ast.Assign):
            yield from (prefix + target.id for target in node.targets if isinstance(target, ast.Name))


@cache
def names_in(path: Path) -> frozenset[str]:
    return frozenset(defined(ast.parse(path.read_text("utf-8")).body))


def test_every_path_exists() -> None:
    paths = {word for word in re.findall(r"`([\w./]+)`", TEXT) if word.startswith(FOLDERS)}
    assert len(paths) > 40
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_every_name_after_a_path_exists_in_that_file() -> None:
    references = [(path, name) for path, names in REFERENCE.findall(TEXT) for name in re.findall(r"`([\w.]+)`", names)]
    assert len(references) > 60
    assert [f"{path} {name}" for path, name in references if name not in names_in(ROOT / path)] == []


def test_every_class_exists() -> None:
    walks = "".join(WALKS.values())
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)*)(?:\.\w+)?`", walks))
    files = (file for package in ("services", "shared") for file in (ROOT / package).rglob("*.py"))
    assert named - {name for file in files for name in names_in(file)} == set()


def test_every_step_of_a_walk_starts_with_a_file_and_a_name() -> None:
    steps = [line.split(". ", 1)[1] for walk in WALKS.values() for line in walk.splitlines()]
    assert [step for step in steps if not REFERENCE.match(step)] == []


def test_there_are_four_walks_of_one_screen() -> None:
    assert list(WALKS) == ["One run order", "One segment", "One score", "One reward model"]
    assert all(8 <= len(walk.splitlines()) <= 20 for walk in WALKS.values())
