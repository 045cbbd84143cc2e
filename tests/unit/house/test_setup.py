"""The setup can install torch without CUDA: nothing here computes on a GPU, and CUDA takes gigabytes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
INDEX = "https://download.pytorch.org/whl/cpu"
PIP = """#!/bin/bash
echo "$*" >> "${0%/*}/calls"
"""


def pip_calls(venv: Path, **environment: str) -> list[str]:
    """Run the setup with a fake pip and return the arguments of its calls."""
    tools = venv / "bin"
    tools.mkdir(parents=True)
    (tools / "pip").write_text(PIP)
    for tool in ("pip", "python"):
        (tools / tool).touch()
        (tools / tool).chmod(0o755)
    variables = {name: value for name, value in os.environ.items() if name != "TORCH_INDEX"} | environment
    command = ["bash", ".ci/setup", sys.executable, str(venv), "all"]
    subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, check=True)
    return (tools / "calls").read_text().splitlines()


def test_torch_is_installed_first_in_the_pinned_version(tmp_path: Path) -> None:
    torch, rest = pip_calls(tmp_path)
    assert re.search(r"install -c .ci/constraints.txt torch==[\d.]+$", torch)
    assert rest.endswith("install -c .ci/constraints.txt -e .[all]")


def test_an_index_of_cpu_wheels_is_used_for_torch_only(tmp_path: Path) -> None:
    alone, torch, _ = pip_calls(tmp_path, TORCH_INDEX=INDEX)
    assert re.search(rf"--no-deps --index-url {INDEX} torch==[\d.]+$", alone)
    assert re.search(r"install -c .ci/constraints.txt torch==[\d.]+$", torch), "its dependencies, pinned"


@pytest.mark.parametrize("service", ["rewardmodel", "trainer"])
def test_images_install_torch_the_same_way(service: str) -> None:
    text = (ROOT / "deploy/Containerfile").read_text()
    stage = text.partition(f"FROM packages AS packages-{service}\n")[2].partition("\nFROM ")[0]
    assert f"ARG TORCH_INDEX={INDEX}\n" in text
    assert 'pip install --no-deps --index-url "${TORCH_INDEX}" torch==' in stage


def test_an_environment_without_pip_is_completed(tmp_path: Path) -> None:
    """As ctrl-C leaves it during the creation."""
    tools = tmp_path / "with space" / "bin"
    tools.mkdir(parents=True)
    (tools / "python").touch(mode=0o755)
    fake = tmp_path / "python3.11"
    fake.write_text(f'#!/bin/bash\n[ "$2" = venv ] && [ "$3" != --help ] && cp "{tmp_path}/pip" "$3/bin/pip"\nexit 0\n')
    (tmp_path / "pip").write_text(PIP)
    for file in (fake, tmp_path / "pip"):
        file.chmod(0o755)
    command = ["bash", ".ci/setup", str(fake), str(tools.parent), "all"]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert len((tools / "calls").read_text().splitlines()) >= 2
