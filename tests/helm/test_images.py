"""`make images`: unique tags, and digests from the registry in a values file that the chart takes."""

import re
import subprocess
from pathlib import Path
from typing import Any

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
case "$1 $2" in "pull {refused}") echo "unauthorized" >&2; exit 1;; esac
"""


def container_tool(folder: Path, name: str, build: int = 0, refused: str = "nothing") -> Path:
    path = folder / name
    path.write_text(TOOL.format(log=folder / "log", build=build, refused=refused))
    path.chmod(0o755)
    return path


def make_images(folder: Path, tool: Path) -> int:
    files = ["--output", str(folder / "values.yaml"), "--compose", str(folder / "override.yaml")]
    return images.main(["--registry", "registry.example.com/zelda", "--tool", str(tool), *files])


def values_of(folder: Path) -> dict[str, Any]:
    return dict(yaml.safe_load((folder / "values.yaml").read_text()))


@pytest.mark.parametrize("name", ["podman", "docker"])
def test_every_image_is_pinned_by_its_digest(name: str, tmp_path: Path) -> None:
    assert make_images(tmp_path, container_tool(tmp_path, name)) == 0
    calls = (tmp_path / "log").read_text()
    assert len(re.findall(r"^build -f deploy/Containerfile --target \w+ -t \S+ \.$", calls, re.MULTILINE)) == 5
    assert len(set(values_of(tmp_path)["images"]["digests"].values())) == 5
    used = [
        container["image"]
        for _, pod in pod_templates(render(merged(profile("prod"), values_of(tmp_path))))
        for container in containers(pod)
    ]
    assert len(used) > 5
    assert [one for one in used if not re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", one)] == []
    assert [one for one in used if "zelda-rlaif" in one and not one.startswith("registry.example.com/zelda/")] == []


def test_compose_runs_the_digests_of_others(tmp_path: Path) -> None:
    assert make_images(tmp_path, container_tool(tmp_path, "podman")) == 0
    services = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
    override = yaml.safe_load((tmp_path / "override.yaml").read_text())["services"]
    pinned = {name: service["image"].partition("@sha256:")[0] for name, service in override.items()}
    others = {name: one["image"] for name, one in services.items() if not one["image"].startswith("zelda-rlaif-")}
    assert pinned == others


def test_an_image_that_cannot_be_pulled_keeps_its_tag(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    refused = "quay.io/openshift/origin-oauth-proxy:4.20"
    assert make_images(tmp_path, container_tool(tmp_path, "podman", refused=refused)) == 0
    assert f"{refused} keeps its tag: `" in capfd.readouterr().err
    assert "expose" not in values_of(tmp_path)
    assert values_of(tmp_path)["bus"]["embedded"]["image"]["digest"].startswith("sha256:")


def test_a_tag_names_the_commit() -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    assert re.fullmatch(rf"{re.escape(images.version())}-{commit[:12]}(-dirty)?", images.unique_tag())


def test_a_failed_build_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make_images(tmp_path, container_tool(tmp_path, "podman", build=3)) == 1
    assert "ended with code 3" in capsys.readouterr().err
    assert not (tmp_path / "values.yaml").exists()


def test_ray_is_found_under_a_login_shell() -> None:
    """KubeRay may start Ray with `bash -lc`, and Debian's /etc/profile replaces PATH."""
    (line,) = re.findall(r"^RUN (echo .+) > /etc/profile\.d/\S+\.sh", _trainer_stage(), re.MULTILINE)
    shell = ["bash", "--noprofile", "--norc", "-c", f'PATH=/usr/local/bin:/usr/bin:/bin; eval "$({line})"; echo $PATH']
    assert subprocess.run(shell, capture_output=True, text=True, check=True).stdout.startswith("/opt/venv/bin:")


def test_the_trainer_image_has_the_tools_of_the_operators_init_containers() -> None:
    """KubeRay's probes call wget, OpenShift AI's certificate check calls openssl."""
    assert re.search(r"apt-get install -y --no-install-recommends openssl wget\b", _trainer_stage())


def test_ray_reports_no_usage_to_its_authors(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray._common.usage.usage_lib import usage_stats_enabled

    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    settings = dict(re.findall(r"^ENV (RAY_\w+)=(\S+)$", _trainer_stage(), re.MULTILINE))
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert usage_stats_enabled() is False


def test_a_trainer_with_cuda_has_the_libraries_that_torch_needs() -> None:
    """Without them `import torch` fails: CUDA's wheels link to libraries in packages of their own."""
    stage = _stage("packages-trainer AS packages-trainer-cuda")
    (install,) = re.findall(r"pip install (.+?) &&", stage)
    assert re.fullmatch(r'--index-url "\$\{TORCH_INDEX\}" torch==[\d.]+', install), "with its dependencies"
    assert "sbom.json" in stage
    text = (ROOT / "deploy/Containerfile").read_text()
    chosen = re.findall(r"^FROM (\S+\$\{TORCH\}) AS (\S+)$", text, re.MULTILINE)
    assert chosen == [("packages-trainer-${TORCH}", "packages-of-trainer")]
    assert "COPY --from=packages-of-trainer /opt/venv /opt/venv\n" in _trainer_stage()
    assert re.search(r"^ARG TORCH=cpu\n", text.partition("\nFROM ")[0], re.MULTILINE), "no CUDA unless it is chosen"
    guide = " ".join((ROOT / "docs/install-openshift.md").read_text().split())
    assert "--target trainer --build-arg TORCH=cuda --build-arg TORCH_INDEX=" in guide


def _trainer_stage() -> str:
    return _stage("code AS trainer")


def _stage(head: str) -> str:
    return (ROOT / "deploy/Containerfile").read_text().partition(f"FROM {head}\n")[2].partition("\nFROM ")[0]
