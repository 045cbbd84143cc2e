"""A tool that CI installs is required there: without it a test fails, and does not skip unseen."""

import re
from pathlib import Path

import pytest

from tests.required_tools import INSTALLED_BY, needs

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("environment", "usable", "skipped"),
    [
        ({}, True, True),
        ({"REQUIRE_TOOLS": "sdcc"}, True, True),
        ({"REQUIRE_TOOLS": "helm sdcc"}, True, False),
        ({"HELM": "/opt/helm"}, True, False),
        ({"HELM": "/opt/helm"}, False, True),
        ({"HELM": "/opt/helm", "REQUIRE_TOOLS": "helm"}, False, False),
    ],
)
def test_a_test_skips_only_if_nobody_requires_its_tool(
    environment: dict[str, str], usable: bool, skipped: bool
) -> None:
    assert needs("helm", usable=usable, environment={"PATH": "", **environment}).args == (skipped,)


def test_ci_requires_what_tests_need_and_it_installs() -> None:
    lines = re.findall(r'REQUIRE_TOOLS="(?:\$\{REQUIRE_TOOLS:-\} )?(.+)"', (ROOT / ".ci/run").read_text())
    texts = [path.read_text() for path in ROOT.glob("tests/**/*.py") if path != Path(__file__)]
    needed = {tool for text in texts for tool in re.findall(r'needs\("(\w+)"', text)}
    assert needed == set(INSTALLED_BY)
    assert sorted(" ".join(lines).split()) == sorted(needed - {"kubectl"})
