"""The generated values files are committed, and a wrong value is refused by name."""

from typing import Any

import helm_python
import pytest

from deploy.generate import values_files
from deploy.generate.values import Values
from tests.helm.rendering import CHART, PROFILES, Object, of_kind, profile, render

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key at the top": ({"replicas": 3}, "replicas"),
    "unknown service": ({"services": {"planner": {}}}, "planner"),
    "misspelt key": ({"services": {"judge": {"replica": 2}}}, "replica"),
    "replicas as text": ({"services": {"judge": {"replicas": "two"}}}, "replicas"),
    "negative replicas": ({"services": {"exporter": {"replicas": -1}}}, "replicas"),
    "too many replicas": ({"services": {"exporter": {"replicas": 1000}}}, "replicas"),
    "two trainers": ({"services": {"trainer": {"replicas": 2}}}, "replicas"),
    "foreign environment variable": ({"services": {"judge": {"env": {"PATH": "/"}}}}, "PATH"),
    "environment value as number": ({"services": {"judge": {"env": {"ZELDA_JUDGE__SLOTS": 3}}}}, "SLOTS"),
    "memory without unit name": ({"services": {"judge": {"resources": {"limits": {"memory": "lots"}}}}}, "memory"),
    "cpu as number": ({"services": {"judge": {"resources": {"limits": {"cpu": 1}}}}}, "cpu"),
    "unknown resource": ({"services": {"judge": {"resources": {"limits": {"disk": "1Gi"}}}}}, "disk"),
    "unknown training backend": ({"services": {"trainer": {"backend": "slurm"}}}, "backend"),
    "too short grace": ({"services": {"judge": {"graceSeconds": 1}}}, "graceSeconds"),
    "the tag latest": ({"images": {"tag": "latest"}}, "tag"),
    "an invalid digest": ({"images": {"digests": {"judge": "sha256:abc"}}}, "judge"),
    "unknown pull policy": ({"images": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
    "unknown platform": ({"platform": {"odhVersion": "2.9"}}, "odhVersion"),
    "platform as number": ({"platform": {"odhVersion": 3.5}}, "odhVersion"),
    "switch as truth value": ({"apis": {"route": True}}, "route"),
    "unknown optional API": ({"apis": {"istio": "on"}}, "istio"),
    "unknown log level": ({"log": {"level": "LOUD"}}, "level"),
    "bus address with a password": ({"bus": {"mode": "external", "url": "nats://me:secret@host:4222"}}, "url"),
    "bus address without scheme": ({"bus": {"mode": "external", "url": "host:4222"}}, "url"),
    "two bus servers": ({"bus": {"embedded": {"replicas": 2}}}, "replicas"),
    "store without scheme": ({"store": {"mode": "external", "endpoint": "s3.example.com"}}, "endpoint"),
    "capital letters in a bucket": ({"store": {"prefix": "Zelda"}}, "prefix"),
    "segments for no day": ({"store": {"keepSegmentsDays": 0}}, "keepSegmentsDays"),
    "unknown store": ({"store": {"mode": "disk"}}, "mode"),
    "ROM path upwards": ({"rom": {"source": "pvc", "name": "roms", "path": "../zelda.gbc"}}, "path"),
    "ROM checksum too short": ({"rom": {"sha256": "123abc"}}, "sha256"),
    "unknown judge mode": ({"judges": {"mode": "oracle"}}, "mode"),
    "no votes": ({"judges": {"votes": [0]}}, "votes"),
    "model from the open web": ({"llm": {"models": {"state": {"uri": "http://example.com/x"}}}}, "uri"),
    "nine GPUs in a pod": ({"llm": {"models": {"state": {"gpus": 9}}}}, "gpus"),
    "Ray version without patch": ({"ray": {"version": "2.60"}}, "version"),
    "a password in the values": ({"api": {"token": "secret"}}, "token"),
    "unknown door": ({"expose": {"kind": "loadbalancer"}}, "kind"),
    "an invalid network": ({"networkPolicies": {"externalCidr": "everywhere"}}, "externalCidr"),
    "a model source without mask": ({"networkPolicies": {"modelSourceCidr": "10.0.0.1"}}, "modelSourceCidr"),
    "policies off by word": ({"networkPolicies": {"enabled": "no"}}, "enabled"),
    "scrape interval without unit": ({"monitoring": {"interval": "30"}}, "interval"),
    "endless test": ({"hooks": {"testTimeoutSeconds": 1000000}}, "testTimeoutSeconds"),
}


def test_there_are_thirty_wrong_values() -> None:
    assert len(WRONG) >= 30


@pytest.mark.parametrize("title", WRONG)
def test_a_wrong_value_is_refused_and_named(title: str) -> None:
    values, word = WRONG[title]
    with helm_python.Chart.load(CHART) as chart, pytest.raises(helm_python.HelmError) as refusal:
        chart.validate_schema(chart.merge_values(values))
    message = str(refusal.value)
    assert word in message, message
    assert len(message) < 600, message


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_is_allowed(name: str) -> None:
    with helm_python.Chart.load(CHART) as chart:
        chart.validate_schema(chart.merge_values(profile(name)))


def test_the_committed_values_files_are_current() -> None:
    assert (CHART / "values.yaml").read_text() == values_files.values_yaml(), "run `python -m deploy.generate`"
    assert (CHART / "values.schema.json").read_text() == values_files.schema_json(), "run `python -m deploy.generate`"
    readme = values_files.readme((CHART / "README.md.in").read_text())
    assert (CHART / "README.md").read_text() == readme, "run `python -m deploy.generate`"


def test_labels_name_the_chart_and_objects_the_release() -> None:
    def services(more: dict[str, Any]) -> list[Object]:
        return of_kind(render(profile("dev") | more), "Service")

    renamed, moved = services({"nameOverride": "oracle"}), services({"fullnameOverride": "oracle"})
    assert {one["metadata"]["labels"]["app.kubernetes.io/name"] for one in renamed} == {"oracle"}
    assert [one["metadata"]["name"] for one in renamed] == [one["metadata"]["name"] for one in services({})]
    assert [one["metadata"]["name"] for one in moved if not one["metadata"]["name"].startswith("oracle-")] == []
    assert "labels" in (Values.model_fields["name_override"].description or "")
    assert "object names" in (Values.model_fields["fullname_override"].description or "")


def test_every_value_is_explained() -> None:
    lines = [line.strip() for line in (CHART / "values.yaml").read_text().splitlines()]
    keys = [index for index, line in enumerate(lines) if line and not line.startswith("#")]
    assert [lines[index] for index in keys if len(lines[index - 1].lstrip("# ")) < 3] == []


def test_helm_lint_passes() -> None:
    for name in PROFILES:
        report = helm_python.lint(CHART, values=profile(name), strict=True)
        assert "ERROR" not in str(report), report
        assert "WARNING" not in str(report), report
