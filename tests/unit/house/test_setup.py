"""The environment gets torch without CUDA: nothing here computes on a GPU, and the README promises 3 GB."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
INDEX = "https://download.pytorch.org/whl/cpu"
PIP = """#!/bin/bash
echo "$*" >> "${0%/*}/told"
[[ "$*" != *--index-url* || -e "${0%/*}/reachable" ]]
"""


def told_to_pip(venv: Path, *, reachable: bool) -> tuple[list[str], str]:
    """What the set-up asks pip for, and what it says, where torch's own index can or cannot be reached."""
    tools = venv / "bin"
    tools.mkdir(parents=True)
    (tools / "pip").write_text(PIP)
    for tool in ("pip", "python"):
        (tools / tool).touch()
        (tools / tool).chmod(0o755)
    if reachable:
        (tools / "reachable").touch()
    done = subprocess.run(
        ["bash", ".ci/setup", sys.executable, str(venv), "all"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return (tools / "told").read_text().splitlines(), done.stderr


def test_torch_comes_first_and_alone_from_the_index_of_its_cpu_wheels(tmp_path: Path) -> None:
    (torch, rest), _ = told_to_pip(tmp_path, reachable=True)
    assert re.search(rf"--no-deps .*--index-url {INDEX} torch==", torch)
    assert rest.endswith("install -c constraints.txt -e .[all]")


def test_where_that_index_is_out_of_reach_another_torch_is_taken_and_its_size_is_told(tmp_path: Path) -> None:
    (_, torch, _), said = told_to_pip(tmp_path, reachable=False)
    assert re.search(r"install -c constraints.txt torch==", torch)
    assert "several GB of CUDA" in said


@pytest.mark.parametrize("service", ["rewardmodel", "trainer"])
def test_images_take_it_the_same_way(service: str) -> None:
    text = (ROOT / "Containerfile").read_text()
    stage = text.partition(f"FROM packages AS packages-{service}\n")[2].partition("\nFROM ")[0]
    assert f"ARG TORCH_INDEX={INDEX}\n" in text
    assert 'pip install --no-deps --index-url "${TORCH_INDEX}" torch==' in stage
