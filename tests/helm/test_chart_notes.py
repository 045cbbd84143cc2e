"""The commands of Helm's notes work as printed and reach the exposed address."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from services.coordinator.api.models import NewRun
from tests.helm.rendering import CHART, ROOT, merged, named, profile, render, render_files

TOOL = """#!/bin/bash
case "$*" in
  *"get secret zelda-api "*operator-token*) printf the-token | base64 ;;
  *"get route zelda-coordinator "*) printf chosen.example.com ;;
  *port-forward*) echo forwarded >> "$SEEN" ;;
esac
"""
CURL = """#!/bin/bash
echo "$2 ${*: -1}" >> "$SEEN"
"""
FORWARDED = "http://localhost:8080/runs"
EXPOSURES: dict[str, tuple[dict[str, Any], str]] = {
    "none": ({"kind": "none"}, FORWARDED),
    "route": ({"kind": "route"}, "https://chosen.example.com/runs"),
    "ingress": ({"kind": "ingress", "host": "zelda.example.com", "tlsSecret": "t"}, "https://zelda.example.com/runs"),
    "route with log-in": ({"kind": "route", "oauth": {"enabled": True}}, FORWARDED),
}


def commands(expose: dict[str, Any], **more: Any) -> str:
    """The indented lines: the commands."""
    files = render_files(merged(profile("dev"), {"expose": expose, **more}))
    (notes,) = (text for name, text in files.items() if name.endswith("NOTES.txt"))
    return "\n".join(line for line in notes.splitlines() if line.startswith("     "))


@pytest.mark.parametrize("title", EXPOSURES)
def test_the_commands_start_a_run_through_the_exposed_port(title: str, tmp_path: Path) -> None:
    expose, address = EXPOSURES[title]
    for name in ("kubectl", "oc", "helm", "curl"):
        (tmp_path / name).write_text(CURL if name == "curl" else TOOL)
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SEEN": str(tmp_path / "seen")}
    script = f"set -eu\n{commands(expose)}\nwait"
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "seen").read_text().splitlines()
    assert f"Authorization: Bearer the-token {address}" in seen
    assert ("forwarded" in seen) == (address == FORWARDED)


def patience_s(text: str) -> list[int]:
    """Seconds that each `helm test` of a text waits."""
    found = re.findall(r"^ *helm .*\btest (.+)$", text, re.MULTILINE)
    waits = [re.search(r"--timeout (\d+)([ms])", one) or re.match("(5)(m)", "5m") for one in found]  # Helm's default
    return [int(wait[1]) * (60 if wait[2] == "m" else 1) for wait in waits if wait]


def test_helm_waits_as_long_as_its_test_may_last() -> None:
    deadline = named(render(profile("dev")), "Pod", "zelda-test")["spec"]["activeDeadlineSeconds"]
    pages = ("docs/install-openshift.md", "docs/upgrade.md", f"charts/{CHART.name}/README.md")
    waits = {page: patience_s((ROOT / page).read_text()) for page in pages}
    assert {page: len(found) for page, found in waits.items()} == dict(zip(pages, (2, 1, 1), strict=True))
    assert [page for page, found in waits.items() if min(found) <= deadline] == []
    (printed,) = patience_s(commands({"kind": "none"}, hooks={"testTimeoutSeconds": 5000}))
    assert printed > 5060


@pytest.mark.parametrize(
    ("rom", "game"),
    [
        ({"source": "none"}, None),
        ({"source": "pvc", "name": "r", "path": "g", "sha256": "0" * 64}, "oracle-of-seasons"),
    ],
)
def test_the_first_run_plays_the_provided_rom(rom: dict[str, str], game: str | None) -> None:
    (body,) = re.findall(r" -d '(.+?)' ", commands({"kind": "none"}, rom=rom))
    asked = NewRun.model_validate_json(body)
    assert (asked.config.epochs, asked.config.game) == (5, game or "bramble")
