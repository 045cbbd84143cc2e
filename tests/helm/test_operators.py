"""The release as the platform's operators leave it: heads get ready, nothing collides, the right accounts call."""

from functools import cache
from typing import Any

import pytest

from tests.helm.operators import kserve, kuberay, network
from tests.helm.rendering import PROFILES, Object, containers, merged, named, of_kind, pod_templates, profile, render
from tests.helm.test_chart_objects import EVERYTHING, switched

PLATFORMS = ("3.3", "3.4", "3.5")
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@cache
def release(name: str, platform: str) -> list[Object]:
    """A profile on Ray with every optional object."""
    everything = merged(merged(profile(name), switched("on")), EVERYTHING)
    return render(merged(everything, {"platform": {"odhVersion": platform}}))


@cache
def operated(name: str, platform: str, version: str) -> tuple[kuberay.Operated, ...]:
    """What the operator makes of each RayCluster."""
    clusters = kuberay.clusters(release(name, platform))
    return tuple(kuberay.operated(cluster, kuberay.RELEASES[version]) for cluster in clusters)


def policies(name: str, platform: str, version: str) -> list[Object]:
    """All policies: the chart's, with those of the same name replaced by the operator's, as it does."""
    own = {one["metadata"]["name"]: one for one in of_kind(release(name, platform), "NetworkPolicy")}
    made = {one["metadata"]["name"]: one for done in operated(name, platform, version) for one in done.policies}
    return [*(own | made).values()]


every_release = pytest.mark.parametrize(
    ("name", "platform", "version"),
    [(name, platform, version) for name in PROFILES for platform in PLATFORMS for version in kuberay.RELEASES],
)


def labels(pod: Object) -> dict[str, str]:
    found: dict[str, str] = pod["metadata"]["labels"]
    return found


def token_of(pod: Object, container: Object) -> bool:
    """Whether Kubernetes gives a container the pod's token: not where it mounts something at that path itself."""
    own = any(mount["mountPath"] == TOKEN_PATH for mount in container.get("volumeMounts", []))
    return pod["spec"].get("automountServiceAccountToken", True) and not own


@every_release
def test_the_head_can_become_ready(name: str, platform: str, version: str) -> None:
    """Its kube-rbac-proxy asks the API server to review tokens: without a token or a way there it ends, and KubeRay's
    CheckAllPodsRunning (utils/util.go) never reports the cluster ready, so that RayJobs are never submitted."""
    for done in operated(name, platform, version):
        head = done.pods["head"]
        (proxy,) = (one for one in head["spec"]["containers"] if one["name"] == kuberay.PROXY)
        assert token_of(head, proxy)
        for port in (443, 6443):
            assert network.reaches_network(policies(name, platform, version), labels(head), port)


@every_release
def test_ray_itself_gets_no_token(name: str, platform: str, version: str) -> None:
    for done in operated(name, platform, version):
        for pod in done.pods.values():
            assert not token_of(pod, pod["spec"]["containers"][0])


@every_release
def test_no_name_of_the_operator_collides(name: str, platform: str, version: str) -> None:
    objects = release(name, platform)
    own = {one["metadata"]["name"] for one in of_kind(objects, "NetworkPolicy")}
    accounts = {one["metadata"]["name"] for one in of_kind(objects, "ServiceAccount")}
    for done in operated(name, platform, version):
        assert not own & {one["metadata"]["name"] for one in done.policies}
        assert not accounts & set(done.accounts)
        for pod in done.pods.values():
            assert_unique([container["name"] for container in containers(pod)])
            assert_unique([volume["name"] for volume in pod["spec"]["volumes"]])
            assert_unique([port["name"] for container in pod["spec"]["containers"] for port in container["ports"]])
            for container in containers(pod):
                assert_unique([entry["name"] for entry in container.get("env", [])])
                assert_unique([mount["mountPath"] for mount in container.get("volumeMounts", [])])


def assert_unique(names: list[str]) -> None:
    assert len(names) == len(set(names)), names


@every_release
def test_only_trainer_and_ray_reach_the_job_server(name: str, platform: str, version: str) -> None:
    """The operator's policy admits every pod of the namespace; the default denial stops the others on their side."""
    objects, every = release(name, platform), policies(name, platform, version)
    pods = [(owner, labels(pod)) for owner, pod in pod_templates(objects) if not owner.startswith("Ray")]
    pods.append(("a pod of somebody else", {"app": "other"}))
    for done in operated(name, platform, version):
        head = labels(done.pods["head"])
        reached = {owner for owner, own in pods if network.connects(every, own, head, 8265)}
        assert reached == {"Deployment/zelda-trainer"}
        assert not {owner for owner, own in pods if network.connects(every, own, head, 10001)}
        for worker in (pod for node, pod in done.pods.items() if node != "head"):
            assert network.connects(every, labels(worker), head, 6379)
        assert network.receives(every, head, 8265, {"app.kubernetes.io/name": "kuberay"}, "redhat-ods-applications")
        assert not network.receives(every, head, 8265, {}, "team-a")


@every_release
def test_learners_of_a_cluster_reach_each_other(name: str, platform: str, version: str) -> None:
    """Gloo, which adds up their gradients, listens on a port that the system chooses."""
    every = policies(name, platform, version)
    for done in operated(name, platform, version):
        pods = [labels(pod) for pod in done.pods.values()]
        assert [1 for one in pods for other in pods if not network.connects(every, one, other, 40_123)] == []


@every_release
def test_every_account_that_calls_models_may_do_so(name: str, platform: str, version: str) -> None:
    """The gateway asks whether the caller's account may get the LLMInferenceService; KubeRay replaces the account of a
    head, so that no head is a caller by default (with a planner: test_chart_planner.py)."""
    objects = release(name, platform)
    every = [
        *pod_templates(objects),
        *((k, p) for done in operated(name, platform, version) for k, p in done.pods.items()),
    ]
    callers = {owner: pod["spec"].get("serviceAccountName") for owner, pod in every if calls_models(pod)}
    expected = {"Deployment/zelda-judge", "Job/zelda-evaluation"} if name != "dev" else set()
    assert {owner.rpartition("-")[0] if owner.startswith("Job") else owner for owner in callers} == expected
    for binding in (one for one in of_kind(objects, "RoleBinding") if one["metadata"]["name"] == "zelda-judge-models"):
        assert set(callers.values()) == {subject["name"] for subject in binding["subjects"]}


def calls_models(pod: Object) -> bool:
    return any(volume["name"] == "judge-token" for volume in pod["spec"].get("volumes", []))


@every_release
def test_the_stored_cluster_has_what_was_rendered(name: str, platform: str, version: str) -> None:
    """The API server drops a field that the platform's definition lacks: Argo CD would never be in sync."""
    for cluster in kuberay.clusters(release(name, platform)):
        stored = kuberay.admitted(cluster, kuberay.release_of(platform))
        assert set(cluster["spec"]) <= set(stored["spec"])


def models(more: dict[str, Any], platform: str) -> dict[str, Object]:
    """Name -> spec of each vLLM pod of the prod profile."""
    objects = render(merged(merged(profile("prod"), {"platform": {"odhVersion": platform}}), {"llm": more}))
    services = of_kind(objects, "LLMInferenceService")
    return {one["metadata"]["name"]: kserve.deployed(one, objects, platform) for one in services}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_download_of_gated_weights_has_the_token(platform: str) -> None:
    for pod in models({"tokenSecret": "hugging-face"}, platform).values():
        (loader,) = pod["initContainers"]
        reference = {"secretKeyRef": {"name": "hugging-face", "key": "HF_TOKEN"}}
        assert {"name": "HF_TOKEN", "valueFrom": reference} in loader["env"]
        assert "HF_TOKEN" not in {entry["name"] for entry in pod["containers"][0]["env"]}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_arguments_reach_vllm_once(platform: str) -> None:
    for pod in models({}, platform).values():
        line = pod["containers"][0]["line"]
        assert line.startswith("vllm serve /mnt/models")
        assert line.count("--max-model-len 16384") == 1


@pytest.mark.parametrize("platform", PLATFORMS)
def test_downloaded_weights_are_requested_from_the_node(platform: str) -> None:
    for pod in models({}, platform).values():
        assert "ephemeral-storage" in pod["containers"][0]["resources"]["requests"]
    mounted = {"state": {"uri": "oci://registry.example.com/qwen:7b"}, "puzzle": {"uri": "pvc://weights/qwen-32b"}}
    for name, pod in models({"models": mounted}, platform).items():
        downloads = any(container["name"] == "storage-initializer" for container in pod["initContainers"])
        assert downloads == (name == "zelda-qwen25-vl-32b")
        assert ("ephemeral-storage" in pod["containers"][0]["resources"]["requests"]) == downloads


def test_a_head_of_plain_kuberay_has_no_token() -> None:
    objects = render(merged(profile("openshift"), {"ray": {"authProxy": "off"}}))
    head = named(objects, "RayCluster", "zelda-ray")["spec"]["headGroupSpec"]["template"]["spec"]
    assert head["automountServiceAccountToken"] is False
    assert "zelda-ray-api-server" not in {one["metadata"]["name"] for one in of_kind(objects, "NetworkPolicy")}
