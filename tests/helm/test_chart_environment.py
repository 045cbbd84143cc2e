"""Services know every variable of the chart, and every file that a variable names is mounted."""

import importlib
import os
import re
from pathlib import Path
from typing import Any

import pytest

from services.exporter.domain.policy import ExportPolicy
from services.exporter.settings import ExportGroup
from services.judge.config import load_judges
from services.judge.settings import JudgeGroup
from shared.config.configure import read_settings
from shared.config.settings import BusOnlySettings, ProcessSettings, ServiceSettings
from shared.store.provision import ProvisionSettings as StoreProvision
from tests.helm.pods import materialize
from tests.helm.rendering import PROFILES, ROOT, Object, merged, of_kind, pod_templates, profile, render

SETTINGS = {
    "coordinator": ("services.coordinator.settings", "Settings"),
    "trainer": ("services.trainer.settings", "TrainerSettings"),
    "judge": ("services.judge.settings", "JudgeSettings"),
    "rewardmodel": ("services.rewardmodel.settings", "RewardModelSettings"),
    "exporter": ("services.exporter.settings", "ExporterSettings"),
    "ray-head": ("services.trainer.settings", "DriverSettings"),
    "evaluation": ("services.judge.settings", "JudgeSettings"),
    "rewardmodel-training": ("services.rewardmodel.settings", "RewardModelSettings"),
    "ray-worker": ("services.trainer.settings", "DriverSettings"),
}
EXTERNAL = {"state": "state", "puzzle": "puzzle", "vision": "vision"}
JOB = {"enabled": True, "run": "first"}
VARIANTS: dict[str, dict[str, Any]] = {
    **{name: merged(profile(name), {"apis": {"ray": "on"}}) for name in PROFILES},
    "jobs": merged(profile("prod"), {"jobs": dict.fromkeys(("epoch", "evaluation", "rewardmodel"), JOB)}),
    "planner": merged(profile("openshift"), {"planner": {"enabled": True}}),
    "bucketclaim": merged(profile("openshift"), {"store": {"mode": "bucketclaim"}}),
    "rom": merged(profile("dev"), {"rom": {"source": "pvc", "name": "roms", "path": "a.gbc", "sha256": "0" * 64}}),
    "external": merged(
        profile("dev"),
        {
            "judges": {
                "mode": "external",
                "external": {
                    "routes": {name: {"baseUrl": "https://llm.example.com/v1", "model": name} for name in EXTERNAL},
                    "apiKeySecret": "llm-key",
                    "ca": {"name": "llm-ca"},
                    "proxy": "http://proxy.example.com:3128",
                },
            },
            "store": {"mode": "external", "endpoint": "https://s3.example.com", "ca": {"name": "s3-ca"}},
            "bus": {"mode": "external", "url": "tls://nats.example.com", "tls": {"enabled": True, "ca": {"name": "x"}}},
        },
    ),
}


def settings_of(component: str) -> type[ProcessSettings]:
    module, name = SETTINGS[component]
    found: type[ProcessSettings] = getattr(importlib.import_module(module), name)
    return found


def problems_of(settings: type[ProcessSettings], environment: dict[str, str], monkeypatch: Any) -> list[str]:
    for name in [name for name in os.environ if name.startswith("ZELDA_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return read_settings(settings, environment)[1]


def pods(objects: list[Object]) -> dict[str, Object]:
    """component -> pod template with project code."""
    found = {
        template["metadata"]["labels"]["app.kubernetes.io/component"]: template
        for _, template in pod_templates(objects)
    }
    return {component: template for component, template in found.items() if component in SETTINGS}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_service_accepts_its_environment(variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = render(VARIANTS[variant])
    found = {}
    for component, template in pods(objects).items():
        container = materialize(objects, template, component, tmp_path / component)
        found[component] = problems_of(settings_of(component), container.environment, monkeypatch)
    services = {"coordinator", "trainer", "judge", "rewardmodel", "exporter"}
    jobs = {"evaluation", "rewardmodel-training"} if variant == "jobs" else set()
    assert {component for component in found if not component.startswith("ray")} == services | jobs
    assert {component: problems for component, problems in found.items() if problems} == {}


@pytest.mark.parametrize(("grace", "drain"), [(10, 5.0), (20, 10.0), (30, 15.0), (45, 30.0), (600, 585.0)])
def test_a_service_drains_within_its_grace_period(
    grace: int, drain: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("coordinator", "trainer", "judge", "rewardmodel", "exporter")
    services = {name: {"graceSeconds": grace} for name in names}
    objects = render(merged(profile("dev"), {"services": services}))
    for component in services:
        template = pods(objects)[component]
        assert template["spec"]["terminationGracePeriodSeconds"] == grace
        container = materialize(objects, template, component, tmp_path / component)
        assert problems_of(settings_of(component), container.environment, monkeypatch) == []
        settings = settings_of(component)()
        assert isinstance(settings, ServiceSettings)
        assert settings.shutdown.drain_s == drain


@pytest.mark.parametrize("variant", VARIANTS)
def test_judges_read_the_rendered_judges_file(variant: str, tmp_path: Path) -> None:
    objects = render(VARIANTS[variant])
    materialize(objects, pods(objects)["judge"], "judge", tmp_path)
    judges = load_judges(tmp_path / "etc/zelda/judges.yaml", "")
    assert [judge.name for judge in judges.judges] == ["state", "puzzle", "vision"]
    proxies = {"http://proxy.example.com:3128"} if variant == "external" else {None}
    assert {route.proxy for route in judges.routes.values()} == proxies
    assert {dimension for judge in judges.judges for dimension in judge.dimensions} == set(judges.weights.as_dict())


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_hook_accepts_its_environment(variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = render(VARIANTS[variant])
    (job,) = (one for one in of_kind(objects, "Job") if "-provision-" in one["metadata"]["name"])
    container = materialize(objects, job["spec"]["template"], "provision", tmp_path)
    for settings in (BusOnlySettings, StoreProvision):
        assert problems_of(settings, container.environment, monkeypatch) == []


def test_the_runbook_advises_no_default_value() -> None:
    advised = re.findall(r"`ZELDA_EXPORT__POLICY: (\w+)`", (ROOT / "docs/runbook.md").read_text())
    assert advised
    assert ExportGroup().policy not in [ExportPolicy(value) for value in advised]


@pytest.mark.parametrize(
    ("judge", "shares"),
    [({"replicas": 3}, "3"), ({"replicas": 3, "autoscaling": {"mode": "cpu", "min": 2, "max": 12}}, "12")],
)
def test_the_budget_is_divided_by_the_most_judge_pods(judge: dict[str, Any], shares: str) -> None:
    objects = render(merged(profile("dev"), {"services": {"judge": judge}}))
    (container,) = pods(objects)["judge"]["spec"]["containers"]
    assert {"name": "ZELDA_JUDGE__REPLICAS", "value": shares} in container["env"]


@pytest.mark.parametrize("judge", [{}, {"replicas": 0, "autoscaling": {"mode": "none"}}], ids=["judges", "no judges"])
def test_a_job_that_judges_alone_has_the_whole_budget(
    judge: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"judges": {"budget": {"calls": 500}}, "services": {"judge": judge}}
    objects = render(merged(VARIANTS["jobs"], own))
    container = materialize(objects, pods(objects)["evaluation"], "evaluation", tmp_path)
    assert problems_of(settings_of("evaluation"), container.environment, monkeypatch) == []
    assert container.environment["ZELDA_JUDGE__BUDGET_CALLS"] == "500"
    assert JudgeGroup.model_fields["replicas"].default == 1
    assert "ZELDA_JUDGE__REPLICAS" not in container.environment


def test_a_misspelt_variable_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = render(merged(profile("dev"), {"services": {"judge": {"env": {"ZELDA_JUDGE__SLOTZ": "1"}}}}))
    container = materialize(objects, pods(objects)["judge"], "judge", tmp_path)
    (problem,) = problems_of(settings_of("judge"), container.environment, monkeypatch)
    assert "did you mean ZELDA_JUDGE__SLOTS" in problem
