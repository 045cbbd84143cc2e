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
}


@pytest.mark.parametrize("title", IMPOSSIBLE)
def test_what_cannot_work_is_refused_with_what_to_do(title: str) -> None:
    name, values, advice = IMPOSSIBLE[title]
    with pytest.raises(helm_python.HelmError, match=advice):
        render(merged(profile(name), values))
