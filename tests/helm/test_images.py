"""`make images`: unique tags, and digests from the registry in a values file that the chart takes."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from deploy import images
from tests.helm.rendering import ROOT, containers, merged, pod_templates, profile, render

# Stands in for the container tool: notes its arguments, and gives each image another digest.
TOOL = """#!/bin/sh
echo "$@" >> {log}
for word in "$@"; do last=$word; done
digest=sha256:$(printf %s "$last" | sha256sum | cut -d' ' -f1)
if [ "$1 $2" = "push --digestfile" ]; then echo $digest > "$3"; fi
if [ "$1" = inspect ]; then echo "$last@$digest"; fi
if [ "$1" = build ]; then exit {build}; fi
"""


def container_tool(folder: Path, name: str, build: int = 0) -> Path:
    path = folder / name
    path.write_text(TOOL.format(log=folder / "log", build=build))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", ["podman", "docker"])
def test_every_image_is_pinned_by_its_digest(name: str, tmp_path: Path) -> None:
    tool, output = container_tool(tmp_path, name), tmp_path / "values.yaml"
    arguments = ["--registry", "registry.example.com/zelda", "--tool", str(tool), "--output", str(output)]
    assert images.main(arguments) == 0
    calls = (tmp_path / "log").read_text()
    assert len(re.findall(r"^build -f deploy/Containerfile --target \w+ -t \S+ \.$", calls, re.MULTILINE)) == 5
    values = yaml.safe_load(output.read_text())
    assert len(set(values["images"]["digests"].values())) == 5
    ours = [
        container["image"]
        for _, pod in pod_templates(render(merged(profile("prod"), values)))
        for container in containers(pod)
        if "zelda-rlaif" in container["image"]
    ]
    assert len(ours) > 5
    assert [one for one in ours if not re.fullmatch(r"registry\.example\.com/zelda/\S+@sha256:[0-9a-f]{64}", one)] == []


def test_a_tag_names_the_commit() -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    assert re.fullmatch(rf"{re.escape(images.version())}-{commit[:12]}(-dirty)?", images.unique_tag())


def test_a_failed_build_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool, output = container_tool(tmp_path, "podman", build=3), tmp_path / "values.yaml"
    assert images.main(["--registry", "r", "--tool", str(tool), "--output", str(output)]) == 1
    assert "ended with code 3" in capsys.readouterr().err
    assert not output.exists()


def test_ray_is_found_under_a_login_shell() -> None:
    """KubeRay may start Ray with `bash -lc`, and Debian's /etc/profile replaces PATH."""
    (line,) = re.findall(r"^RUN (echo .+) > /etc/profile\.d/\S+\.sh", _trainer_stage(), re.MULTILINE)
    shell = ["bash", "--noprofile", "--norc", "-c", f'PATH=/usr/local/bin:/usr/bin:/bin; eval "$({line})"; echo $PATH']
    assert subprocess.run(shell, capture_output=True, text=True, check=True).stdout.startswith("/opt/venv/bin:")


def test_the_trainer_image_has_the_tools_of_the_operators_init_containers() -> None:
    """KubeRay's probes call wget, OpenShift AI's certificate check calls openssl."""
    assert re.search(r"apt-get install -y --no-install-recommends openssl wget\b", _trainer_stage())


def _trainer_stage() -> str:
    return (ROOT / "deploy/Containerfile").read_text().partition("FROM code AS trainer\n")[2].partition("\nFROM ")[0]
