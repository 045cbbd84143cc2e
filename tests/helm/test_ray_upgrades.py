"""What a change of the release does to running Ray pods, by the operators' rules, and how long a driver may write."""

from pathlib import Path
from typing import Any

import pytest

from tests.helm.operators import kuberay, kueue
from tests.helm.rendering import CHART, Object, merged, named, profile, render
from tests.helm.test_chart_jobs import chart_of_version

QUEUED: dict[str, Any] = {}
UNQUEUED = {"apis": {"kueue": "off"}}


def cluster(more: dict[str, Any], chart: Path = CHART) -> Object:
    return named(render(merged(profile("openshift"), more), chart), "RayCluster", "zelda-ray")


def replaced(change: dict[str, Any], base: dict[str, Any], platform: str) -> bool:
    """Whether a change of the values ends the running Ray pods."""
    base = merged(base, {"platform": {"odhVersion": platform}})
    return ends_pods(cluster(base), cluster(merged(base, change)), platform)


def ends_pods(before: Object, after: Object, platform: str) -> bool:
    release = kuberay.release_of(platform)
    return kueue.admitted_again(before, after) or kuberay.restarted(before, after, release)


@pytest.mark.parametrize("platform", ["3.3", "3.4", "3.5"])
@pytest.mark.parametrize("base", [QUEUED, UNQUEUED], ids=["queued", "not queued"])
@pytest.mark.parametrize(
    "change",
    [{"log": {"level": "debug"}}, {"monitoring": {"interval": "15s"}}, {"services": {"judge": {"replicas": 3}}}],
    ids=["log level", "scrapes", "judges"],
)
def test_training_survives_a_change_of_something_else(
    change: dict[str, Any], base: dict[str, Any], platform: str
) -> None:
    assert not replaced(change, base, platform)


@pytest.mark.parametrize(
    ("base", "platform", "ends"),
    [(QUEUED, "3.3", True), (QUEUED, "3.5", True), (UNQUEUED, "3.5", True), (UNQUEUED, "3.4", False)],
)
def test_a_new_image_reaches_running_ray_pods(base: dict[str, Any], platform: str, ends: bool) -> None:
    """KubeRay 1.4.2 alone leaves the old pods: docs/upgrade.md names the command that replaces them."""
    assert replaced({"images": {"tag": "0.2.0"}}, base, platform) is ends


def test_a_new_chart_with_the_same_image_does_not_end_training(tmp_path: Path) -> None:
    newer = chart_of_version("9.9.9", tmp_path)
    for base, platform in ((QUEUED, "3.4"), (QUEUED, "3.5"), (UNQUEUED, "3.5")):
        values = merged(base, {"platform": {"odhVersion": platform}})
        assert not ends_pods(cluster(values), cluster(values, newer), platform)


def test_a_driver_has_time_for_its_checkpoint() -> None:
    head = cluster({})["spec"]["headGroupSpec"]["template"]["spec"]
    command = head["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert command[1:3] == ["-m", "services.trainer.driver.stop"]
    assert 150 == head["terminationGracePeriodSeconds"] > int(command[-1]) >= 120


def test_the_flavour_of_another_node_is_a_conflict() -> None:
    """With a node selector of its own, a Ray pod must not contradict the queue's flavour."""
    flavour = {"nodeLabels": {"role": "train"}, "tolerations": [{"key": "train", "operator": "Exists"}]}
    kueue.admit(cluster({}), flavour)
    kueue.admit(cluster({"ray": {"head": {"nodeSelector": {"role": "train"}}}}), flavour)
    with pytest.raises(kueue.Refused, match="role"):
        kueue.admit(cluster({"ray": {"head": {"nodeSelector": {"role": "head"}}}}), flavour)
