"""The generated values files are committed, and a wrong value is refused by name."""

from collections.abc import Iterator
from typing import Any

import helm_python
import pytest

from deploy.generate import values_files
from deploy.generate.values import Values
from tests.helm.rendering import CHART, PROFILES, Object, of_kind, profile, render
from tests.helm.wrong_values import MISTAKES


@pytest.fixture(scope="module")
def chart() -> Iterator[helm_python.Chart]:
    with helm_python.Chart.load(CHART) as loaded:
        yield loaded


@pytest.mark.parametrize("title", MISTAKES)
def test_a_wrong_value_is_refused_and_named(title: str, chart: helm_python.Chart) -> None:
    values, word = MISTAKES[title]
    with pytest.raises(helm_python.HelmError) as refusal:
        chart.validate_schema(chart.merge_values(values))
    message = str(refusal.value)
    assert word in message, message
    assert len(message) < 600, message


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_is_allowed(name: str) -> None:
    with helm_python.Chart.load(CHART) as chart:
        chart.validate_schema(chart.merge_values(profile(name)))


@pytest.mark.parametrize("tag", ["", "1", "v1", "0.1.0-0a1b2c3d4e5f-dirty", "release_2", "sha-4f", "v" * 127 + "1"])
def test_a_tag_that_registries_accept_is_allowed(tag: str, chart: helm_python.Chart) -> None:
    chart.validate_schema(chart.merge_values({"images": {"tag": tag}}))


@pytest.mark.parametrize("network", ["0.0.0.0/0", "10.0.0.0/8", "::/0", "fd00::/8", "2001:db8:1:2:3:4:5:6/128"])
def test_networks_of_both_families_are_allowed(network: str, chart: helm_python.Chart) -> None:
    chart.validate_schema(chart.merge_values({"networkPolicies": {"externalCidr": network}}))


def test_another_chart_may_contain_this_one(chart: helm_python.Chart) -> None:
    """Helm gives each contained chart the key `global` of its parent."""
    chart.validate_schema(chart.merge_values({"global": {"domain": "example.com"}}))


def test_the_committed_values_files_are_current() -> None:
    assert (CHART / "values.yaml").read_text() == values_files.values_yaml(), "run `python -m deploy.generate`"
    assert (CHART / "values.schema.json").read_text() == values_files.schema_json(), "run `python -m deploy.generate`"
    readme = values_files.readme((CHART / "README.md.in").read_text())
    assert (CHART / "README.md").read_text() == readme, "run `python -m deploy.generate`"


def test_labels_name_the_chart_and_objects_the_release() -> None:
    def services(more: dict[str, Any]) -> list[Object]:
        return of_kind(render(profile("dev") | more), "Service")

    renamed, moved = services({"nameOverride": "oracle"}), services({"fullnameOverride": "oracle"})
    assert {one["metadata"]["labels"]["app.kubernetes.io/part-of"] for one in renamed} == {"oracle"}
    assert [one["spec"]["selector"] for one in renamed] == [one["spec"]["selector"] for one in services({})]
    assert [one["metadata"]["name"] for one in renamed] == [one["metadata"]["name"] for one in services({})]
    assert [one["metadata"]["name"] for one in moved if not one["metadata"]["name"].startswith("oracle-")] == []
    assert "label" in (Values.model_fields["name_override"].description or "")
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
