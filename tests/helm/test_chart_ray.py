"""Ray's pods and what talks to them: a GPU for the learner, and the token of the job server."""

import re
from pathlib import Path

import pytest
import yaml

from services.trainer.settings import DriverSettings, TrainerSettings
from tests.helm.operators import kuberay
from tests.helm.pods import literal, materialize
from tests.helm.rendering import PROFILES, ROOT, Object, merged, named, pod_templates, profile, render

GPU = "nvidia.com/gpu"
ON_RAY = {"services": {"trainer": {"backend": "ray"}}, "apis": {"ray": "on"}}


def ray_pods(objects: list[Object]) -> dict[str, Object]:
    return {owner: pod["spec"]["containers"][0] for owner, pod in pod_templates(objects) if owner.startswith("Ray")}


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("version", kuberay.RELEASES)
def test_only_the_head_gets_the_learners_gpu(name: str, version: str) -> None:
    """It survives what KubeRay's operator makes of the head, and the driver's settings accept the variable."""
    objects = render(merged(merged(profile(name), ON_RAY), {"ray": {"head": {"gpus": 1}}}))
    for owner, container in ray_pods(objects).items():
        found = {kind: container["resources"][kind].get(GPU) for kind in ("requests", "limits")}
        expected = "1" if owner.endswith("/head") else None
        assert found == {"requests": expected, "limits": expected}, owner
        assert literal(container).get("ZELDA_DRIVER__LEARNER_DEVICE") == ("cuda" if expected else None)
    (cluster,) = (one for one in kuberay.clusters(objects) if one["metadata"]["name"] == "zelda-ray")
    head = kuberay.operated(cluster, kuberay.RELEASES[version]).pods["head"]
    assert head["spec"]["containers"][0]["resources"]["limits"][GPU] == "1"
    assert DriverSettings.model_validate({"driver": {"learner_device": "cuda"}, "store": {"url": "memory://"}})


def test_with_the_guides_toleration_the_head_accepts_gpu_nodes() -> None:
    guide = (ROOT / "docs/install-openshift.md").read_text()
    (key,) = re.findall(r"ray\.head\.tolerations\[0\]\.key=([\w./-]+)", guide)
    (nodes,) = yaml.safe_load_all((ROOT / "deploy/machinesets/llm-inference.yaml").read_text())
    (taint,) = nodes["spec"]["template"]["spec"]["taints"]
    head = {"gpus": 1, "tolerations": [{"key": key}]}
    (cluster,) = kuberay.clusters(render(merged(merged(profile("openshift"), ON_RAY), {"ray": {"head": head}})))
    (accepted,) = cluster["spec"]["headGroupSpec"]["template"]["spec"]["tolerations"]
    assert accepted == {"key": taint["key"], "operator": "Exists"}  # of every value and effect


@pytest.mark.parametrize("name", PROFILES)
def test_without_a_gpu_the_learner_uses_the_processor(name: str) -> None:
    for owner, container in ray_pods(render(merged(profile(name), ON_RAY))).items():
        assert "ZELDA_DRIVER__LEARNER_DEVICE" not in literal(container), owner
        assert GPU not in container["resources"]["limits"], owner


def test_the_trainer_sends_the_named_token(tmp_path: Path) -> None:
    objects = render(merged(profile("openshift"), {"ray": {"tokenSecret": "ray-access"}}))
    pod = named(objects, "Deployment", "zelda-trainer")["spec"]["template"]
    container = materialize(objects, pod, "trainer", tmp_path, {"ray-access": {"token": "s" * 40}})
    file = container.environment["ZELDA_TRAINER__RAY_TOKEN_FILE"]
    assert Path(file).read_text() == "s" * 40
    group = {"backend": "ray_jobs", "ray_address": "http://head:8265", "ray_token_file": file}
    made = TrainerSettings.model_validate(
        {"trainer": group, "store": {"url": "memory://"}, "bus": {"url": "memory://"}}
    )
    assert made.trainer.ray_token_file is not None
