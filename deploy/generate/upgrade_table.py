"""The table of docs/upgrade.md: which pods a changed value replaces, from the differences of two renderings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from deploy.generate.rendering import PROFILE, RELEASE, all_objects, merged, render_files

BEGIN, END = "<!-- upgrade table: python -m deploy.generate -->", "<!-- end of the table -->"
Changes = Mapping[str, tuple[str, dict[str, Any]]]
# value -> (what the row says, another value)
CHANGES: Changes = {
    "images.tag": ("another image", {"images": {"tag": "9.9.9"}}),
    "images.registry": ("another registry", {"images": {"registry": "registry.example.com/other"}}),
    "images.digests.trainer": ("one image", {"images": {"digests": {"trainer": "sha256:" + "0" * 64}}}),
    "images.digests.judge": ("one image", {"images": {"digests": {"judge": "sha256:" + "0" * 64}}}),
    "images.pullPolicy": ("when to pull", {"images": {"pullPolicy": "Always"}}),
    "images.pullSecrets": ("access to a registry", {"images": {"pullSecrets": ["registry"]}}),
    "platform.userId": ("user of all pods", {"platform": {"userId": 10_001}}),
    "platform.priorityClass": ("priority of all pods", {"platform": {"priorityClass": "training"}}),
    "log.level, format": ("logs", {"log": {"level": "debug"}}),
    "platform.odhVersion": ("platform release", {"platform": {"odhVersion": "3.4"}}),
    "services.*.replicas": ("number of pods", {"services": {"coordinator": {"replicas": 3}}}),
    "services.judge.nodeSelector, tolerations": (
        "nodes of a service",
        {"services": {"judge": {"nodeSelector": {"role": "judge"}}}},
    ),
    "services.judge.resources": (
        "size of a service",
        {"services": {"judge": {"resources": {"limits": {"memory": "2Gi"}}}}},
    ),
    "services.judge.graceSeconds": ("time to end", {"services": {"judge": {"graceSeconds": 60}}}),
    "services.trainer.graceSeconds": ("time for a checkpoint", {"services": {"trainer": {"graceSeconds": 200}}}),
    "services.judge.env": ("a setting of one service", {"services": {"judge": {"env": {"ZELDA_JUDGE__SLOTS": "8"}}}}),
    "services.judge.autoscaling": ("limits of scaling", {"services": {"judge": {"autoscaling": {"max": 9}}}}),
    "services.trainer.resources": (
        "size of the service",
        {"services": {"trainer": {"resources": {"limits": {"memory": "2Gi"}}}}},
    ),
    "runs.defaults, fromWorkers, envsPerRunner, stepsPerEnv": (
        "defaults of new runs",
        {"runs": {"defaults": {"epochs": 50}}},
    ),
    "runs.learners": ("learners of new runs", {"runs": {"learners": 4}}),
    "judges.votes, judges, weights, phases": ("votes, prices, weights, phases, judges", {"judges": {"votes": [5, 9]}}),
    "judges.budget": ("budget of an epoch", {"judges": {"budget": {"calls": 500}}}),
    "judges.concurrency, timeoutSeconds": ("limits of requests", {"judges": {"concurrency": 8}}),
    "judges.ca, tokenAudience": ("trust in the models", {"judges": {"ca": {"name": "models-ca"}}}),
    "planner.enabled": ("planner and guidance", {"planner": {"enabled": True}}),
    "planner.routes, budget, keepAnswers, priority": (
        "models and limits of planner and guidance; the next driver reads them",
        {"planner": {"priority": 0}},
    ),
    "llm.gatewayUrl, useGateway": ("way to the models", {"llm": {"gatewayUrl": "https://gateway.example.com"}}),
    "llm.priority": ("priority of requests", {"llm": {"priority": -20}}),
    "llm.auth": ("log-in at the models", {"llm": {"auth": False}}),
    "llm.tokenSecret": ("access to weights", {"llm": {"tokenSecret": "hugging-face"}}),
    "llm.models.*": (
        "size, nodes and weights of vLLM pods",
        {"llm": {"models": {"puzzle": {"resources": {"requests": {"memory": "100Gi"}}}}}},
    ),
    "llm.models.*.replicas": ("vLLM pods", {"llm": {"models": {"puzzle": {"replicas": 2}}}}),
    "llm.models.*.args": ("vLLM arguments", {"llm": {"models": {"puzzle": {"args": ["--seed", "1"]}}}}),
    "rom": ("a ROM", {"rom": {"source": "pvc", "name": "roms", "path": "game.gbc", "sha256": "0" * 64}}),
    "ray.head.resources": ("size of the head", {"ray": {"head": {"resources": {"limits": {"memory": "9Gi"}}}}}),
    "ray.*.nodeSelector": ("nodes of Ray", {"ray": {"head": {"nodeSelector": {"role": "train"}}}}),
    "ray.*.tolerations": ("taints that Ray accepts", {"ray": {"head": {"tolerations": [{"key": "train"}]}}}),
    "ray.head.gpus": ("a GPU of the learner", {"ray": {"head": {"gpus": 1}}}),
    "ray.tokenSecret": ("access to the job server", {"ray": {"tokenSecret": "ray-access"}}),
    "ray.workers.min, max": ("number of workers", {"ray": {"workers": {"min": 5, "max": 5}}}),
    "ray.workers.resources": (
        "size of workers",
        {"ray": {"workers": {"resources": {"requests": {"memory": "7Gi"}}}}},
    ),
    "jobs.evaluation, rewardmodel": ("single jobs", {"jobs": {"evaluation": {"enabled": True, "run": "first"}}}),
    "bus.embedded.syncAlways": ("fsync of each message", {"bus": {"embedded": {"syncAlways": False}}}),
    "bus.embedded.exporter": ("metrics of NATS", {"bus": {"embedded": {"exporter": {"enabled": False}}}}),
    "bus.embedded.resources": ("size of NATS", {"bus": {"embedded": {"resources": {"limits": {"memory": "2Gi"}}}}}),
    "bus.embedded.image": ("NATS image", {"bus": {"embedded": {"image": {"tag": "2.15.2"}}}}),
    "store.embedded.image": ("S3 image", {"store": {"embedded": {"image": {"tag": "4.49"}}}}),
    "store.embedded.resources": ("size of S3", {"store": {"embedded": {"resources": {"limits": {"memory": "2Gi"}}}}}),
    "store.keepSegmentsDays": ("life of segments", {"store": {"keepSegmentsDays": 90}}),
    "store.ca": ("the store's authority", {"store": {"ca": {"name": "store-ca"}}}),
    "api.tokenSecret": ("tokens of the API", {"api": {"tokenSecret": "tokens"}}),
    "expose.host, annotations, ingressClass, tlsSecret": (
        "address from outside",
        {"expose": {"host": "zelda.example.com"}},
    ),
    "expose.oauth.image, cookieSecret, resources": ("log-in proxy", {"expose": {"oauth": {"image": {"tag": "4.21"}}}}),
    "networkPolicies.*": ("network policies", {"networkPolicies": {"clients": ["team-a"]}}),
    "hooks.*": ("jobs around an upgrade", {"hooks": {"testEpochSteps": 4_000}}),
    "tracing.endpoint, sampleRatio, ca, port": (
        "traces of the services",
        {"tracing": {"endpoint": "http://collector.observability.svc:4318"}},
    ),
    "tracing.modelsEndpoint": (
        "traces of vLLM and router",
        {"tracing": {"modelsEndpoint": "http://collector.observability.svc:4317"}},
    ),
    "monitoring.*": ("scrapes, alerts, dashboards", {"monitoring": {"interval": "15s"}}),
}

NOT_CHANGED = {
    "nameOverride, fullnameOverride, kueue.localQueue": "names: another name is another release",
    "global": "not used: of a chart that contains this one",
    "apis.*, expose.kind, expose.oauth.enabled, llm.enabled, llm.shared.*": "add or remove whole objects",
    "bus.mode, url, account, streamReplicas, monitorAddress, secretName, tls.*, embedded.replicas, embedded.volume.*": (
        "another bus: see below"
    ),
    "store.mode, prefix, endpoint, port, region, secretName, accessKey, secretKey, claimStorageClass": (
        "another store, which lacks the runs: copy the objects first, see [backup](backup-restore.md)"
    ),
    "store.embedded.volume.*": "the volume of a StatefulSet: see below",
    "services.trainer.backend, services.trainer.replicas, jobs.epoch.*": "where training runs: stop runs first",
    "ray.version, autoscaling, authProxy, gcsFaultTolerance.*": "the Ray cluster itself: as a new trainer image",
    "judges.mode, external.*, rulesResources": "other judges: let runs finish first",
    "secrets.generate, kueue.clusterQueue, kueue.admin.*": "of the installation and its administrator",
}
"""Values without a row, and why a running release seldom changes them."""


def table(chart: Path) -> str:
    """The rows, with the openshift profile before each change."""
    values = yaml.safe_load((chart / PROFILE).read_text())
    before = _pods(chart, values)
    lines = ["| value | change of | pods that are replaced | training |", "|---|---|---|---|"]
    for value, (what, change) in CHANGES.items():
        after = _pods(chart, merged(values, change))
        replaced = sorted(name for name in before if before[name] != after.get(name))
        lines.append(f"| `{value}` | {what} | {', '.join(replaced) or 'none'} | {effect(replaced)} |")
    lines += ["", "Without a row, because a running release seldom changes them:", ""]
    lines += [f"- `{values}`: {why}" for values, why in NOT_CHANGED.items()]
    return "\n".join(lines)


def effect(replaced: list[str]) -> str:
    """What happens to a running epoch. The driver is a job on Ray's head, which outlives the trainer's pod."""
    return "resumes from its checkpoint" if "Ray" in replaced else "continues"


def page(text: str, chart: Path) -> str:
    """The page with a current table."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table(chart)}\n{END}{tail}"


def _pods(chart: Path, values: dict[str, Any]) -> dict[str, Any]:
    """Name -> what decides whether the pods are replaced."""
    found: dict[str, Any] = {}
    for one in all_objects(render_files(chart, values)):
        name = one["metadata"]["name"].removeprefix(f"{RELEASE}-")
        if one["kind"] in ("Deployment", "StatefulSet"):
            found[name] = one["spec"]["template"]
        elif one["kind"] == "LLMInferenceService":
            found.setdefault("models", []).append({**one["spec"], "replicas": None, "api": one["apiVersion"]})
        elif one["kind"] == "RayCluster":
            found["Ray"] = _compared_by_kueue(one)
    return found


def _compared_by_kueue(cluster: dict[str, Any]) -> list[Any]:
    """The fields whose change makes Kueue end the pods and queue the cluster again:
    pkg/util/equality/podset.go of github.com/kubernetes-sigs/kueue."""
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    fields = ("tolerations", "initContainers", "containers")
    return [(group.get("replicas", 1), *(group["template"]["spec"].get(field) for field in fields)) for group in groups]
