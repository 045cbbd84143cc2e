"""Rendering refuses conflicting values with one sentence and a remedy."""

from typing import Any

import helm_python
import pytest

from tests.helm.rendering import merged, profile, render

CONFLICTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a segment lifetime in a claimed bucket": (
        "openshift",
        {"store": {"mode": "bucketclaim", "keepSegmentsDays": 90}},
        "leave it null with store.mode bucketclaim",
    ),
    "a log-in that an Ingress bypasses": (
        "dev",
        {"expose": {"kind": "ingress", "host": "h", "tlsSecret": "t", "oauth": {"enabled": True}}},
        "set expose.kind to route",
    ),
    "a queued cluster with autoscaling": ("prod", {"ray": {"autoscaling": True}}, "set ray.autoscaling to false"),
}


def test_ray_may_autoscale_without_kueue() -> None:
    render(merged(profile("prod"), {"ray": {"autoscaling": True}, "apis": {"kueue": "off"}}))


@pytest.mark.parametrize("title", CONFLICTS)
def test_conflicting_values_are_refused_with_a_remedy(title: str) -> None:
    name, values, advice = CONFLICTS[title]
    with pytest.raises(helm_python.HelmError, match=advice):
        render(merged(profile(name), values))
