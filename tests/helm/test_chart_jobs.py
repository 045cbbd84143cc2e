"""Jobs across upgrades: the API server refuses a changed pod template, so the name must change too."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helm import rendering
from tests.helm.rendering import CHART, PROFILES, ROOT, Object, merged, of_kind, profile, render

CHANGES: dict[str, dict[str, Any]] = {
    "log level": {"log": {"level": "debug"}},
    "log format": {"log": {"format": "console"}},
    "user id": {"platform": {"userId": 10001}},
    "no judge": {"services": {"judge": {"replicas": 0, "autoscaling": {"mode": "none"}}}},
    "no exporter": {"services": {"exporter": {"replicas": 0}}},
    "image": {"images": {"tag": "0.2.0"}},
    "pull secret": {"images": {"pullSecrets": ["registry"]}},
    "bus replicas": {"bus": {"mode": "embedded", "embedded": {"replicas": 3}}},
    "bucket prefix": {"store": {"prefix": "other"}},
    "life of segments": {"store": {"keepSegmentsDays": 90}},
    "store authority": {"store": {"ca": {"name": "store-ca"}}},
}


def provision(values: dict[str, Any], chart: Path = CHART) -> Object:
    """The Job that creates streams and buckets."""
    (job,) = (
        one for one in of_kind(render(values, chart), "Job") if one["metadata"]["name"].startswith("zelda-provision-")
    )
    return job


@pytest.mark.parametrize(("days", "expected"), [(None, ""), (90, " --keep-segments-days 90")])
def test_the_provision_job_sets_the_segment_lifetime(days: int | None, expected: str) -> None:
    (container,) = provision(merged(profile("dev"), {"store": {"keepSegmentsDays": days}}))["spec"]["template"]["spec"][
        "containers"
    ]
    store, _, _ = container["command"][-1].partition(" &&")
    assert store == f"python -m shared.store.provision{expected}"


@pytest.mark.parametrize(("mode", "without"), [("none", True), ("cpu", False), ("keda", False)])
def test_a_scaled_judge_has_a_consumer_with_any_replicas(mode: str, without: bool) -> None:
    judge = {"replicas": 0, "autoscaling": {"mode": mode}}
    objects = render(merged(profile("dev"), {"services": {"judge": judge}, "apis": {"keda": "on"}}))
    (job,) = (one for one in of_kind(objects, "Job") if "-provision-" in one["metadata"]["name"])
    assert ("--without judge" in job["spec"]["template"]["spec"]["containers"][0]["command"][-1]) == without


def check_names(one: Object, other: Object) -> None:
    """Two Jobs share a name only with equal pod templates."""
    same_name = one["metadata"]["name"] == other["metadata"]["name"]
    assert same_name == (one["spec"]["template"] == other["spec"]["template"])


@pytest.mark.parametrize("title", CHANGES)
@pytest.mark.parametrize("name", PROFILES)
def test_a_changed_pod_template_renames_the_job(name: str, title: str) -> None:
    before = profile(name)
    check_names(provision(before), provision(merged(before, CHANGES[title])))


def chart_of_version(version: str, folder: Path) -> Path:
    """A copy of the chart with another version of its own and the same images."""
    newer = folder / CHART.name
    shutil.copytree(CHART, newer)
    about = yaml.safe_load((newer / "Chart.yaml").read_text())
    (newer / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": version}))
    return newer


def test_another_chart_version_renames_the_job(tmp_path: Path) -> None:
    check_names(provision(profile("dev")), provision(profile("dev"), chart_of_version("9.9.9", tmp_path)))


def test_equal_values_give_the_same_job() -> None:
    assert provision(profile("dev")) == provision(profile("dev"))
    assert provision(profile("dev")) == provision(merged(profile("dev"), {"monitoring": {"interval": "15s"}}))


@pytest.mark.parametrize("name", PROFILES)
def test_a_finished_job_is_deleted_and_argo_ignores_that(name: str) -> None:
    jobs = {kind: {"enabled": True, "run": "first"} for kind in ("evaluation", "rewardmodel")}
    for job in of_kind(render(merged(profile(name), {"jobs": jobs})), "Job"):
        assert job["spec"]["ttlSecondsAfterFinished"] >= 3600, "its log must stay readable"
        assert {"helm.sh/hook", "argocd.argoproj.io/hook"} & job["metadata"]["annotations"].keys()


def test_the_job_keeps_a_namespace_with_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "NAMESPACE", "team-provision")
    monkeypatch.setattr(rendering, "RELEASE", "re-provision")
    about = provision(profile("dev") | {"fullnameOverride": "zelda"})["metadata"]
    assert about["namespace"] == "team-provision"
    assert about["labels"]["app.kubernetes.io/instance"] == "re-provision"


def test_a_job_is_a_hook_only_with_external_bus_and_store() -> None:
    bus = {"mode": "external", "url": "nats://bus:4222", "monitorAddress": "bus:8222"}
    inside = provision(profile("prod"))["metadata"]["annotations"]
    outside = provision(merged(profile("prod"), {"bus": bus}))["metadata"]["annotations"]
    assert inside == {"argocd.argoproj.io/hook": "Sync"}
    assert outside["helm.sh/hook"] == "pre-install,pre-upgrade,pre-rollback"  # a former version needs its topology back
    assert "argocd.argoproj.io/hook" not in outside


def test_the_documented_command_deletes_every_base_job() -> None:
    commands = re.findall(r"delete job -l '(\S+) in \(([a-z, ]+)\)'", (ROOT / "deploy/README.md").read_text())
    ((label, values),) = commands
    jobs = of_kind(render(profile("openshift")), "Job")
    assert {job["metadata"]["labels"][label] for job in jobs} == set(values.split(", "))
