"""The claimed bucket: what it holds outlives the release."""

from typing import Any

import pytest

from tests.helm.rendering import PROFILES, Object, merged, of_kind, profile, render

CLAIM: dict[str, Any] = {"store": {"mode": "bucketclaim"}, "apis": {"objectBucketClaim": "on"}}


def claimed(name: str, more: dict[str, Any] | None = None) -> list[Object]:
    return render(merged(merged(profile(name), CLAIM), more or {}))


@pytest.mark.parametrize("name", PROFILES)
def test_neither_helm_nor_argo_removes_what_holds_data(name: str) -> None:
    (claim,) = of_kind(claimed(name), "ObjectBucketClaim")
    assert claim["metadata"]["annotations"] == {
        "helm.sh/resource-policy": "keep",
        "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    }
    objects = [*claimed(name), *render(profile(name))]
    assert of_kind(objects, "PersistentVolumeClaim") == [], "one of the release would go with it"
    for one in of_kind(objects, "StatefulSet"):
        assert "persistentVolumeClaimRetentionPolicy" not in one["spec"], "the default keeps the volumes"
