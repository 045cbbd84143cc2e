"""OpenShift AI's KubeRay: what its webhook and its controllers add to a RayCluster on a cluster with Routes.

Paths are in ray-operator/ of github.com/red-hat-data-services/kuberay.
"""

import copy
from dataclasses import dataclass, field
from typing import Any

from tests.helm.rendering import NAMESPACE, Object

TRUSTED = "odh.ray.io/secure-trusted-network"
PROXY, PROXY_PORT = "kube-rbac-proxy", 8443
CERTIFICATES = {"name": "ray-tls-vol", "mountPath": "/home/ray/workspace/tls", "readOnly": True}


@dataclass(frozen=True)
class Release:
    """One version of the operator: `branch` at `commit` of the fork, and the platform releases that ship it."""

    version: str
    branch: str
    commit: str
    platforms: tuple[str, ...]
    recreates: bool  # apis/ray/v1/raycluster_types.go has spec.upgradeStrategy (rhoai-3.5; missing in rhoai-3.4)
    waits_for_address: bool  # raycluster_controller.go configureMTLSForPod adds wait-for-tls-ip-san (rhoai-3.5 only)


# controllers/ray/utils/constant.go: KUBERAY_VERSION of each branch.
RELEASES = {
    "1.4.2": Release(
        "1.4.2", "rhoai-3.4", "938aba9c34", ("3.0", "3.3", "3.4"), recreates=False, waits_for_address=False
    ),
    "1.6.2": Release("1.6.2", "rhoai-3.5", "8f1ff72870", ("3.5",), recreates=True, waits_for_address=True),
}


def release_of(platform: str) -> Release:
    """The operator that a platform release ships."""
    (found,) = (release for release in RELEASES.values() if platform in release.platforms)
    return found


@dataclass(frozen=True)
class Operated:
    """The objects that exist after the operator has seen one RayCluster."""

    cluster: Object
    pods: dict[str, Object]
    policies: list[Object] = field(default_factory=list)
    accounts: list[str] = field(default_factory=list)


def admitted(cluster: Object, release: Release) -> Object:
    """The RayCluster as stored. pkg/webhooks/v1/raycluster_mutating_webhook.go Default (rhoai-3.4, 3.5)."""
    stored = copy.deepcopy(cluster)
    stored["metadata"].setdefault("annotations", {})[TRUSTED] = "true"
    stored["spec"]["headGroupSpec"]["enableIngress"] = False
    if not release.recreates:
        stored["spec"].pop("upgradeStrategy", None)  # the definition lacks the field: the API server prunes it
    return stored


def clusters(objects: list[Object]) -> list[Object]:
    """All RayClusters of a release, those of RayJobs included: rayjob_controller.go names them <job>-<5 letters>."""
    own = [one for one in objects if one["kind"] == "RayCluster"]
    for job in (one for one in objects if one["kind"] == "RayJob"):
        about = {**job["metadata"], "name": f"{job['metadata']['name']}-x7k2p"}
        own.append({"kind": "RayCluster", "metadata": about, "spec": copy.deepcopy(job["spec"]["rayClusterSpec"])})
    return own


def operated(cluster: Object, release: Release) -> Operated:
    """Everything that the operator's controllers make for one cluster."""
    stored = admitted(cluster, release)
    name = stored["metadata"]["name"]
    head = _pod(stored, "head", stored["spec"]["headGroupSpec"]["template"], release)
    _add_proxy(head, name)
    pods = {"head": head}
    for group in stored["spec"].get("workerGroupSpecs", []):
        pods[group["groupName"]] = _pod(stored, "worker", group["template"], release)
    return Operated(stored, pods, [_head_policy(name), _worker_policy(name)], [f"{name}-oauth-proxy-sa"])


def _pod(cluster: Object, node: str, template: Object, release: Release) -> Object:
    """A pod: controllers/ray/common/pod.go labelPod, BuildPod and DefaultWorkerPodTemplate (rhoai-3.5)."""
    pod = copy.deepcopy(template)
    pod["metadata"]["labels"] |= {"ray.io/cluster": cluster["metadata"]["name"], "ray.io/node-type": node}
    spec = pod["spec"]
    spec.setdefault("initContainers", [])
    spec.setdefault("volumes", []).append({"name": "shared-mem", "emptyDir": {"medium": "Memory"}})
    main = spec["containers"][0]
    main.setdefault("volumeMounts", []).append({"name": "shared-mem", "mountPath": "/dev/shm"})
    if node == "worker":
        wait = {key: copy.deepcopy(main[key]) for key in ("image", "env", "volumeMounts", "securityContext")}
        spec["initContainers"].append({"name": "wait-gcs-ready", **wait})
    _add_certificates(pod, node, cluster["metadata"]["name"], release)
    return pod


def _add_certificates(pod: Object, node: str, cluster: str, release: Release) -> None:
    """Mutual TLS. controllers/ray/raycluster_controller.go configureMTLSForPod (rhoai-3.4, 3.5)."""
    spec = pod["spec"]
    files = {"SERVER_CERT": "tls.crt", "SERVER_KEY": "tls.key", "CA_CERT": "ca.crt"}
    variables: list[Object] = [{"name": "RAY_USE_TLS", "value": "1"}]
    variables += [{"name": f"RAY_TLS_{key}", "value": f"/home/ray/workspace/tls/{file}"} for key, file in files.items()]
    if node == "head":
        variables.append({"name": "MY_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
    for container in [*spec["containers"], *spec["initContainers"]]:
        container.setdefault("env", []).extend(copy.deepcopy(variables))
        container.setdefault("volumeMounts", []).append(dict(CERTIFICATES))
    if release.waits_for_address:
        image = spec["containers"][0]["image"]
        spec["initContainers"].insert(
            0,
            {
                "name": "wait-for-tls-ip-san",
                "image": image,
                "command": ["sh", "-c"],
                "args": ["openssl x509 ... | grep ..."],
                "volumeMounts": [dict(CERTIFICATES)],
            },
        )
    spec["volumes"].append({"name": "ray-tls-vol", "secret": {"secretName": f"ray-{node}-secret-{cluster}"}})


def _add_proxy(head: Object, cluster: str) -> None:
    """The sidecar and its account. controllers/ray/utils/auth_sidecar.go InjectAuthSidecar replaces serviceAccountName;
    controllers/ray/authentication_controller.go GetOIDCProxySidecar; sizes: StandardProxyResources (rhoai-3.4, 3.5)."""
    settings = f"kube-rbac-proxy-config-{cluster}"
    head["spec"]["serviceAccountName"] = f"{cluster}-oauth-proxy-sa"
    head["spec"]["containers"].append(
        {
            "name": PROXY,
            "image": "registry.redhat.io/openshift4/ose-kube-rbac-proxy",
            "args": [f"--secure-listen-address=0.0.0.0:{PROXY_PORT}", "--upstream=http://127.0.0.1:8265/"],
            "ports": [{"name": "https", "containerPort": PROXY_PORT}],
            "volumeMounts": [{"name": settings, "mountPath": "/etc/kube-rbac-proxy/", "readOnly": True}],
            "resources": {
                "requests": {"cpu": "10m", "memory": "20Mi"},
                "limits": {"cpu": "200m", "memory": "100Mi"},
            },
        }
    )
    head["spec"]["volumes"].append({"name": settings, "configMap": {"name": settings}})


def _policy(name: str, cluster: str, node: str, ingress: list[Object]) -> Object:
    selected = {"ray.io/cluster": cluster, "ray.io/node-type": node}
    return {
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"ray.io/cluster": cluster}},
        "spec": {"podSelector": {"matchLabels": selected}, "policyTypes": ["Ingress"], "ingress": ingress},
    }


def _ports(*numbers: int) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": number} for number in numbers]


def _head_policy(cluster: str) -> Object:
    """controllers/ray/networkpolicy_controller.go buildHeadNetworkPolicy (equal in rhoai-3.0 to 3.5)."""
    namespace = {"key": "kubernetes.io/metadata.name", "operator": "In"}
    operator = {
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "kuberay"}},
        "namespaceSelector": {"matchExpressions": [{**namespace, "values": ["redhat-ods-applications"]}]},
    }
    gateway = {"namespaceSelector": {"matchExpressions": [{**namespace, "values": ["openshift-ingress"]}]}}
    rules: list[Object] = [
        {"from": [{"podSelector": {"matchLabels": {"ray.io/cluster": cluster}}}]},
        {"from": [{"podSelector": {}}], "ports": _ports(10001, 8265)},
        {"from": [operator], "ports": _ports(8265, 10001)},
        {"from": [gateway], "ports": _ports(8265)},
        {"ports": _ports(PROXY_PORT)},
    ]
    return _policy(f"{cluster}-head", cluster, "head", rules)


def _worker_policy(cluster: str) -> Object:
    """controllers/ray/networkpolicy_controller.go buildWorkerNetworkPolicy (equal in rhoai-3.0 to 3.5)."""
    rules: list[Object] = [{"from": [{"podSelector": {"matchLabels": {"ray.io/cluster": cluster}}}]}]
    return _policy(f"{cluster}-workers", cluster, "worker", rules)


def restarted(before: Object, after: Object, release: Release) -> bool:
    """Whether the operator itself replaces the pods of a changed cluster: raycluster_controller.go
    shouldRecreatePodsForUpgrade, utils/util.go GenerateHashWithoutReplicasAndWorkersToDelete (rhoai-3.5)."""
    if admitted(after, release)["spec"].get("upgradeStrategy") != {"type": "Recreate"}:
        return False
    return _lasting(before["spec"]) != _lasting(after["spec"])


def _lasting(spec: Object) -> Object:
    """The spec without the fields that the operator ignores when it compares: sizes, tolerations, the strategy."""
    kept = copy.deepcopy(spec)
    kept.pop("upgradeStrategy", None)
    for group in [kept["headGroupSpec"], *kept.get("workerGroupSpecs", [])]:
        for name in ("replicas", "minReplicas", "maxReplicas"):
            group.pop(name, None)
        group["template"]["spec"].pop("tolerations", None)
    return kept
