"""Values that cannot work together are refused while rendering, in one sentence that says what to do."""

from typing import Any

import helm_python
import pytest

from tests.helm.rendering import merged, profile, render

IMPOSSIBLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "a life of segments in a claimed bucket": (
        "openshift",
        {"store": {"mode": "bucketclaim", "keepSegmentsDays": 90}},
        "leave it null with store.mode bucketclaim",
    ),
    "a log-in that an Ingress leads past": (
        "dev",
        {"expose": {"kind": "ingress", "host": "h", "tlsSecret": "t", "oauth": {"enabled": True}}},
        "set expose.kind to route",
    ),
    "a queued cluster that changes its size": ("prod", {"ray": {"autoscaling": True}}, "set ray.autoscaling to false"),
}


def test_ray_may_autoscale_without_kueue() -> None:
    render(merged(profile("prod"), {"ray": {"autoscaling": True}, "apis": {"kueue": "off"}}))


@pytest.mark.parametrize("title", IMPOSSIBLE)
def test_conflicting_values_are_refused_with_a_remedy(title: str) -> None:
    name, values, advice = IMPOSSIBLE[title]
    with pytest.raises(helm_python.HelmError, match=advice):
        render(merged(profile(name), values))
