"""The house rules that a machine can check: sizes, names, and that `shared` is really shared."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
CODE = ("services", "shared", "bramble", "cli", "studies", "bench", "tests")
MAX_FILE_LINES, MAX_FUNCTION_LINES = 400, 60
VAGUE_NAMES = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}


@cache
def texts() -> Mapping[Path, str]:
    """Every module's path and text."""
    return {path: path.read_text() for package in CODE for path in sorted((ROOT / package).rglob("*.py"))}


def functions(text: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_file_exceeds_the_line_limit() -> None:
    long = {
        str(p.relative_to(ROOT)): n for p, text in texts().items() if (n := len(text.splitlines())) > MAX_FILE_LINES
    }
    assert long == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path, text in texts().items()
        for node in functions(text)
        if (node.end_lineno or node.lineno) - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert long == []


def test_every_file_name_says_what_is_in_it() -> None:
    assert [str(p) for p in texts() if p.name in VAGUE_NAMES] == []


def test_entry_points_are_short() -> None:
    long = [str(p) for p in (ROOT / "services").glob("*/__main__.py") if len(p.read_text().splitlines()) > 25]
    assert long == []


def importers(module: str) -> set[str]:
    """Services (and the command line) that import `module`, themselves or through another shared module."""
    found: set[str] = set()
    for path, text in texts().items():
        if module in text and (f"from {module} import" in text or f"import {module}" in text):
            found.add("/".join(path.relative_to(ROOT).parts[:2]))
    return found


def test_shared_package_is_used_by_at_least_two_services() -> None:
    users: dict[str, set[str]] = {}
    for package in sorted(p.parent.name for p in (ROOT / "shared").glob("*/__init__.py")):
        users[package] = {
            user
            for path in (ROOT / "shared" / package).glob("*.py")
            for user in importers(f"shared.{package}.{path.stem}")
            if user.startswith(("services/", "cli"))
        }
    assert {package: sorted(by) for package, by in users.items() if len(by) < 2} == {}
