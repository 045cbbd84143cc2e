"""Rules for all rendered objects in every profile: permissions, secrets, resources, network."""

import re

import pytest

from tests.helm.operators.network import selects
from tests.helm.rendering import PROFILES, Object, containers, merged, named, of_kind, pod_templates, profile, render
from tests.helm.test_chart_objects import EVERYTHING, switched

SETS = {name: profile(name) for name in PROFILES} | {
    f"{name}-everything": merged(merged(profile(name), switched("on")), EVERYTHING) for name in PROFILES
}
SECRET_WORDS = re.compile(r"(password|secret_key|api[-_]?key|token)\s*[:=]\s*[\"']?[A-Za-z0-9+/]{12,}", re.IGNORECASE)


@pytest.fixture(scope="module", params=SETS)
def objects(request: pytest.FixtureRequest) -> list[Object]:
    return render(SETS[request.param])


def named_containers(objects: list[Object]) -> list[tuple[str, Object]]:
    return [(f"{owner}:{c['name']}", c) for owner, pod in pod_templates(objects) for c in containers(pod)]


def test_no_pod_asks_for_a_user_or_more_rights(objects: list[Object]) -> None:
    for owner, pod in pod_templates(objects):
        security = pod["spec"]["securityContext"]
        assert security == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}, owner
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod["spec"].keys(), owner
        assert all("hostPath" not in volume for volume in pod["spec"].get("volumes", [])), owner
    for who, container in named_containers(objects):
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False, who
        assert security["readOnlyRootFilesystem"] is True, who
        assert security["capabilities"] == {"drop": ["ALL"]}, who
        assert not {"runAsUser", "runAsGroup", "privileged"} & security.keys(), who


def test_every_image_is_pinned_to_a_version(objects: list[Object]) -> None:
    for who, container in named_containers(objects):
        assert re.search(r"(@sha256:[0-9a-f]{64}|:[A-Za-z0-9._-]+)$", container["image"]), who
        assert not container["image"].endswith(":latest"), who


def test_every_container_has_requests_and_limits(objects: list[Object]) -> None:
    for who, container in named_containers(objects):
        for kind in ("requests", "limits"):
            assert {"cpu", "memory"} <= container["resources"][kind].keys(), who


@pytest.mark.parametrize(("limit", "expected"), [("1Gi", "512MiB"), ("512Mi", "256MiB"), ("4Gi", "2048MiB")])
def test_the_store_stays_below_its_memory_limit(limit: str, expected: str) -> None:
    larger = {"store": {"embedded": {"resources": {"limits": {"memory": limit}}}}}
    pod = named(render(merged(profile("dev"), larger)), "StatefulSet", "zelda-s3")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {"name": "GOMEMLIMIT", "value": expected} in container["env"]


def test_no_pod_fills_the_disk_of_its_node(objects: list[Object]) -> None:
    """Containers write only into volumes, and Kubernetes evicts a pod whose volume exceeds its limit."""
    for owner, pod in pod_templates(objects):
        for volume in pod["spec"].get("volumes", []):
            assert "emptyDir" not in volume or "sizeLimit" in volume["emptyDir"], f"{owner}:{volume['name']}"


@pytest.mark.parametrize("name", SETS)
def test_every_pod_takes_the_named_priority(name: str) -> None:
    objects = render(merged(SETS[name], {"platform": {"priorityClass": "training"}}))
    pods = [*pod_templates(objects)]
    pods += [(one["metadata"]["name"], one["spec"]) for one in of_kind(objects, "LLMInferenceService")]
    for owner, pod in pods:
        spec = pod["template"] if "template" in pod else pod["spec"]
        assert spec["priorityClassName"] == "training", owner


def test_no_object_contains_a_secret(objects: list[Object]) -> None:
    assert of_kind(objects, "Secret") == []
    for who, container in named_containers(objects):
        plain = {e["name"] for e in container.get("env", []) if "value" in e}
        assert not {name for name in plain if name.endswith(("PASSWORD", "_KEY", "TOKEN", "SECRET"))}, who
    for one in of_kind(objects, "ConfigMap"):
        for name, text in one["data"].items():
            assert not SECRET_WORDS.search(text), f"{one['metadata']['name']}/{name}"


def test_rights_name_verbs_resources_and_objects(objects: list[Object]) -> None:
    assert of_kind(objects, "ClusterRole", "ClusterRoleBinding") == []
    for role in of_kind(objects, "Role"):
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]], role["metadata"]["name"]
            assert rule["verbs"] == ["create"] or rule["resourceNames"], role["metadata"]["name"]
    roles = {role["metadata"]["name"] for role in of_kind(objects, "Role")}
    assert roles == {binding["roleRef"]["name"] for binding in of_kind(objects, "RoleBinding")}


def test_only_pods_that_need_the_api_server_get_a_token(objects: list[Object]) -> None:
    with_token = {
        owner for owner, pod in pod_templates(objects) if pod["spec"].get("automountServiceAccountToken", True)
    }
    heads = {owner for owner, _ in pod_templates(objects) if owner.startswith("Ray") and owner.endswith("/head")}
    assert with_token <= {"Job/zelda-secrets"} | heads  # test_operators.py: their own container gets none
    for account in of_kind(objects, "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


def test_every_mount_has_its_volume(objects: list[Object]) -> None:
    """The API server refuses a pod that mounts a volume which it does not have."""
    for owner, pod in pod_templates(objects):
        claims = [{"name": "data"}] if owner.startswith("StatefulSet/") else []
        volumes = {volume["name"] for volume in [*claims, *pod["spec"].get("volumes", [])]}
        mounted = {mount["name"] for container in containers(pod) for mount in container.get("volumeMounts", [])}
        assert mounted <= volumes, f"{owner}: {mounted - volumes}"


def test_services_have_probes_spread_and_grace_period(objects: list[Object]) -> None:
    for owner, pod in pod_templates(objects):
        if owner.startswith("Deployment/") and "rules-judge" not in owner:
            main = pod["spec"]["containers"][0]
            assert {"startupProbe", "livenessProbe", "readinessProbe"} <= main.keys(), owner
            assert pod["spec"]["terminationGracePeriodSeconds"] >= 45, owner
            assert pod["spec"]["topologySpreadConstraints"], owner


def test_a_service_mounts_its_own_bus_credentials_only(objects: list[Object]) -> None:
    for deployment in of_kind(objects, "Deployment"):
        name = deployment["metadata"]["name"].removeprefix("zelda-")
        for volume in deployment["spec"]["template"]["spec"]["volumes"]:
            if volume["name"] == "bus":
                assert [item["key"] for item in volume["secret"]["items"]] == [f"{name}.credentials"]
    for owner, pod in pod_templates(objects):
        if owner.startswith("Ray"):
            assert all(volume["name"] != "bus" for volume in pod["spec"]["volumes"]), owner


def pods_with_models(objects: list[Object]) -> list[tuple[str, dict[str, str], set[int]]]:
    """(owner, labels, ports) of every pod; a controller labels the pods of models and builds."""
    found: list[tuple[str, dict[str, str], set[int]]] = [("Build", {"openshift.io/build.name": "zelda-1"}, set())]
    for owner, pod in pod_templates(objects):
        ports = {port["containerPort"] for c in containers(pod) for port in c.get("ports", [])}
        found.append((owner, pod["metadata"]["labels"], ports))
    for model in of_kind(objects, "LLMInferenceService"):
        labels = {
            "app.kubernetes.io/part-of": "llminferenceservice",
            "app.kubernetes.io/name": model["metadata"]["name"],
        }
        found.append((f"LLMInferenceService/{model['metadata']['name']}", labels, {8000, 9002, 9090, 5557}))
    return found


def test_the_default_policy_denies_everything(objects: list[Object]) -> None:
    policy = named(objects, "NetworkPolicy", "zelda-deny-all")
    assert policy["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_every_allowed_edge_ends_at_an_existing_port(objects: list[Object]) -> None:
    pods = pods_with_models(objects)
    for policy in of_kind(objects, "NetworkPolicy"):
        name, spec = policy["metadata"]["name"], policy["spec"]
        own = [pod for pod in pods if selects(spec["podSelector"], pod[1])]
        if name in ("zelda-deny-all", "zelda-dns"):
            continue
        assert own, f"{name} is about no pod"
        for rule in spec.get("ingress", []):
            ports = {port["port"] for port in rule.get("ports", [])}
            assert ports <= set().union(*(pod[2] for pod in own)), f"{name}: no pod listens on {ports}"
        for rule in [*spec.get("ingress", []), *spec.get("egress", [])]:
            for peer in rule.get("from", rule.get("to", [])):
                if "podSelector" in peer:
                    assert [pod for pod in pods if selects(peer["podSelector"], pod[1])], f"{name}: no pod at its end"


def test_egress_and_ingress_rules_match(objects: list[Object]) -> None:
    pods = pods_with_models(objects)
    policies = of_kind(objects, "NetworkPolicy")

    def allows(direction: str, word: str, here: dict[str, str], there: dict[str, str], port: int) -> bool:
        return any(
            any("podSelector" in peer and selects(peer["podSelector"], there) for peer in rule[word])
            and (not rule.get("ports") or port in {entry["port"] for entry in rule["ports"]})
            for policy in policies
            if selects(policy["spec"]["podSelector"], here)
            for rule in policy["spec"].get(direction, [])
        )

    for who, here, _ in pods:
        for other, there, ports in pods:
            for port in ports:
                sends, receives = (
                    allows("egress", "to", here, there, port),
                    allows("ingress", "from", there, here, port),
                )
                assert sends == receives, f"{who} to {other}:{port}: may send {sends}, may be received {receives}"


def test_only_named_components_reach_the_outside(objects: list[Object]) -> None:
    outside = set()
    for policy in of_kind(objects, "NetworkPolicy"):
        rules = policy["spec"].get("egress", [])
        if any("ipBlock" in peer for rule in rules for peer in rule["to"]):
            outside.add(policy["metadata"]["name"])
    clients = {"zelda-store-clients", "zelda-login", "zelda-secrets", "zelda-models", "zelda-builds"}
    assert outside <= clients | {"zelda-ray-api-server", "zelda-ray-redis", "zelda-tracing"}


def reached(objects: list[Object], policy: str) -> set[tuple[str, int]]:
    """(network, port) of the addresses that a policy allows."""
    rules = named(objects, "NetworkPolicy", policy)["spec"]["egress"]
    return {
        (peer["ipBlock"]["cidr"], port["port"])
        for rule in rules
        for peer in rule["to"]
        if "ipBlock" in peer
        for port in rule["ports"]
    }


def test_models_reach_their_source_with_narrow_external_cidr() -> None:
    prod = profile("prod")
    assert reached(render(prod), "zelda-models") == {("10.0.0.0/8", 443), ("10.0.0.0/8", 6443), ("0.0.0.0/0", 443)}
    mirror = render(merged(prod, {"networkPolicies": {"modelSourceCidr": "10.9.0.0/16"}}))
    assert ("10.9.0.0/16", 443) in reached(mirror, "zelda-models")
    assert not {network for network, _ in reached(mirror, "zelda-models")} & {"0.0.0.0/0"}


@pytest.mark.parametrize(("further", "expected"), [(0, {80, 443, 8443}), (8000, {80, 443, 8000, 8443})])
def test_judges_reach_the_port_of_every_address(further: int, expected: set[int]) -> None:
    addresses = {
        "state": "https://a.example.com/v1",
        "puzzle": "https://b:8443/v1",
        "vision": "http://c.example.com/v1",
    }
    routes = {name: {"baseUrl": address, "model": name} for name, address in addresses.items()}
    judges = {"mode": "external", "external": {"routes": routes, "port": further}}
    assert {
        port for _, port in reached(render(merged(profile("dev"), {"judges": judges})), "zelda-judging")
    } == expected


def test_judges_behind_a_proxy_reach_nothing_else() -> None:
    routes = {
        name: {"baseUrl": f"https://{name}.example.com/v1", "model": name} for name in ("state", "puzzle", "vision")
    }
    judges = {"mode": "external", "external": {"routes": routes, "proxy": "http://proxy.example.com:3128"}}
    rendered = render(merged(profile("dev"), {"judges": judges}))
    assert {port for _, port in reached(rendered, "zelda-judging")} == {3128}


@pytest.mark.parametrize(("further", "expected"), [(0, {443}), (9000, {443, 9000}), (443, {443})])
def test_the_store_is_reachable_behind_another_service_port(further: int, expected: set[int]) -> None:
    store = {"mode": "external", "endpoint": "https://minio.storage.svc", "port": further}
    assert {port for _, port in reached(render(merged(profile("dev"), {"store": store})), "zelda-store-clients")} == (
        expected
    )


@pytest.mark.parametrize(
    ("address", "port"),
    [("redis:6379", 6379), ("redis.db.svc:6380", 6380), ("redis", 6379), ("rediss://redis:7000", 7000)],
)
def test_the_ray_head_reaches_its_redis(address: str, port: int) -> None:
    redis = {"ray": {"gcsFaultTolerance": {"enabled": True, "redisAddress": address}}}
    objects = render(merged(profile("prod"), redis))
    assert reached(objects, "zelda-ray-redis") == {("10.0.0.0/8", port)}
    heads = named(objects, "NetworkPolicy", "zelda-ray-redis")["spec"]["podSelector"]
    head = named(objects, "RayCluster", "zelda-ray")["spec"]["headGroupSpec"]["template"]["metadata"]["labels"]
    assert selects(heads, head)
