"""A claimed bucket is reachable and trusted, and its objects outlive the release."""

from pathlib import Path
from typing import Any

import pytest

from shared.store import provision
from tests.helm.pods import generated_secrets
from tests.helm.rendering import PROFILES, Object, merged, of_kind, pod_templates, profile, render
from tests.helm.test_chart_policies import reached

CLAIM: dict[str, Any] = {"store": {"mode": "bucketclaim"}, "apis": {"objectBucketClaim": "on"}}


def claimed(name: str, more: dict[str, Any] | None = None) -> list[Object]:
    return render(merged(merged(profile(name), CLAIM), more or {}))


@pytest.mark.parametrize("name", PROFILES)
def test_neither_helm_nor_argo_removes_data_objects(name: str) -> None:
    (claim,) = of_kind(claimed(name), "ObjectBucketClaim")
    assert claim["metadata"]["annotations"] == {
        "helm.sh/resource-policy": "keep",
        "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    }
    objects = [*claimed(name), *render(profile(name))]
    assert of_kind(objects, "PersistentVolumeClaim") == [], "one of the release would go with it"
    for one in of_kind(objects, "StatefulSet"):
        assert "persistentVolumeClaimRetentionPolicy" not in one["spec"], "the default keeps the volumes"


def test_the_pod_port_behind_the_service_is_open() -> None:
    assert {port for _, port in reached(claimed("openshift"), "zelda-store-clients")} == {443, 6443}


@pytest.mark.parametrize(
    ("named", "expected"),
    [({}, ("openshift-service-ca.crt", "service-ca.crt")), ({"name": "mine", "key": "ca.pem"}, ("mine", "ca.pem"))],
)
def test_the_platform_authority_is_trusted_by_default(named: dict[str, str], expected: tuple[str, str]) -> None:
    objects = claimed("openshift", {"store": {"ca": named}})
    for owner, pod in pod_templates(objects):
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        if "store" in volumes:
            config = volumes["store-ca"]["configMap"]
            assert (config["name"], config["items"][0]["key"]) == expected, owner


def test_the_chart_does_not_create_the_claims_secret() -> None:
    assert set(generated_secrets(claimed("openshift"))) == {"zelda-bus", "zelda-api"}


def test_the_job_does_not_mention_buckets_that_it_did_not_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").write_text("word")
    settings = {
        "URL": "bucket://claimed",
        "ENDPOINT": "https://127.0.0.1:1",
        "ACCESS_KEY_FILE": "",
        "SECRET_KEY_FILE": "",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"ZELDA_STORE__{name}", value or str(tmp_path / "key"))
    assert provision.main([]) == 0
    printed = capsys.readouterr().out
    assert "nothing was asked or made" in printed
    assert "has its buckets" not in printed
