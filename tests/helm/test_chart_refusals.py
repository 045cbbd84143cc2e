"""Rendering refuses conflicting values with one sentence and a remedy."""

import re
import shutil
from pathlib import Path
from typing import Any

import helm_python
import pytest

from tests.helm.rendering import CHART, merged, profile, render
from tests.helm.wrong_values import CONFLICTS, MISTAKES


def test_ray_may_autoscale_without_kueue() -> None:
    render(merged(profile("prod"), {"ray": {"autoscaling": True}, "apis": {"kueue": "off"}}))


@pytest.mark.parametrize(
    "values",
    [
        {"judges": {"budget": None}},
        {"llm": {"models": {"puzzle": None}}},
        {"planner": {"routes": {"text": None}, "budget": {"guidance": None}}},
        {"services": {"judge": {"resources": {"limits": {"cpu": None}}, "nodeSelector": None}}},
    ],
    ids=["no limit", "no model", "no route", "no cpu limit"],
)
def test_null_removes_what_may_be_absent(values: dict[str, Any]) -> None:
    render(merged(profile("dev"), values))


@pytest.mark.parametrize("title", CONFLICTS)
def test_conflicting_values_are_refused_with_a_remedy(title: str) -> None:
    name, values, advice = CONFLICTS[title]
    with pytest.raises(helm_python.HelmError, match=advice):
        render(merged(profile(name), values))


def test_an_app_version_that_is_no_tag_needs_a_tag_or_digests(tmp_path: Path) -> None:
    """Packaged with the version of a build, such as `helm package --app-version 0.1.0+build.7`."""
    packaged = shutil.copytree(CHART, tmp_path / CHART.name)
    file = packaged / "Chart.yaml"
    file.write_text(re.sub(r"(?m)^appVersion: .+$", "appVersion: 0.1.0+build.7", file.read_text()))
    with pytest.raises(
        helm_python.HelmError, match=r"images\.tag: the chart's appVersion 0\.1\.0\+build\.7 holds a \+"
    ):
        render(profile("dev"), packaged)
    digests = dict.fromkeys(("coordinator", "trainer", "judge", "rewardmodel", "exporter"), f"sha256:{'0' * 64}")
    for images in ({"tag": "0.1.0-7"}, {"digests": digests}):
        render(merged(profile("dev"), {"images": images}), packaged)


def test_at_least_eighty_mistakes_are_known() -> None:
    """Eighty mistakes at least, so that a rule that gets lost is noticed."""
    assert len(MISTAKES) + len(CONFLICTS) >= 80
