"""The notebooks, as far as they need no cluster: clean, compiling, and naming what exists. The first one is executed in
test_release.py."""

import ast
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest

from services.trainer.settings import DriverSettings
from shared.config.configure import known_names
from tests.helm.rendering import ROOT, named, profile, render

FOLDER = ROOT / "deploy/notebooks"
BOOKS = sorted(FOLDER.glob("*.ipynb"))


def code(path: Path) -> str:
    book: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    return "\n".join(cell.source for cell in book.cells if cell.cell_type == "code")


def constant(text: str, name: str) -> ast.expr:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return node.value
    raise LookupError(name)


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_clean_and_compiles(path: Path) -> None:
    book: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(book)
    for cell in book.cells:
        if cell.cell_type == "code":
            compile(cell.source, f"{path.name}:{cell.id}", "exec")
            assert cell.outputs == []
            assert cell.execution_count is None
    assert book.cells[0].cell_type == "markdown"


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_no_secret(path: Path) -> None:
    text = json.dumps(json.loads(path.read_text()))
    assert "password" not in text.lower()
    assert "sha256~" not in text


def test_the_cluster_notebook_uses_settings_that_the_driver_knows() -> None:
    settings = constant(code(FOLDER / "codeflare_epoch.ipynb"), "STORE")
    assert isinstance(settings, ast.Dict)
    names = {str(ast.literal_eval(key)) for key in settings.keys if key is not None}
    assert names <= set(known_names(DriverSettings))


def test_the_cluster_notebook_names_what_the_chart_makes() -> None:
    text, objects = code(FOLDER / "codeflare_epoch.ipynb"), render(profile("openshift"))
    assert "local_queue=RELEASE" in text
    assert named(objects, "LocalQueue", "zelda")
    assert "http://{RELEASE}-s3.{NAMESPACE}.svc:8333" in text
    assert named(objects, "Service", "zelda-s3")
    assert "zelda-rlaif-trainer:0.1.0" in text


def test_the_cluster_notebook_trains_a_run_of_its_own() -> None:
    """The trainer of the release would start a second driver for a run of the coordinator."""
    text = code(FOLDER / "codeflare_epoch.ipynb")
    assert 'entrypoint=f"python -m cli epoch --run {RUN}"' in text
    assert "services.trainer.driver" not in text


@pytest.mark.parametrize(
    ("secrets", "services", "sentence"),
    [
        (["zelda-store"], ["zelda-s3"], ""),
        ([], ["zelda-s3"], "zelda-rl has no Secret zelda-store"),
        (["zelda-store"], [], "zelda-rl has no Service zelda-s3"),
    ],
)
def test_the_cluster_notebook_checks_what_it_needs(secrets: list[str], services: list[str], sentence: str) -> None:
    (check,) = (
        n for n in ast.parse(code(FOLDER / "codeflare_epoch.ipynb")).body if getattr(n, "name", "") == "missing"
    )
    store = {"ZELDA_STORE__ENDPOINT": "http://zelda-s3.zelda-rl.svc:8333"}
    names: dict[str, Any] = {"NAMESPACE": "zelda-rl", "RELEASE": "zelda", "STORE": store}
    exec(compile(ast.Module([check], []), "notebook", "exec"), names)

    def listed(found: list[str]) -> Any:
        return SimpleNamespace(items=[SimpleNamespace(metadata=SimpleNamespace(name=name)) for name in found])

    api = SimpleNamespace(
        list_namespaced_secret=lambda _: listed(secrets), list_namespaced_service=lambda _: listed(services)
    )
    assert names["missing"](api).startswith(sentence)
    assert bool(names["missing"](api)) == bool(sentence)
