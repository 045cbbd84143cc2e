"""The table of docs/upgrade.md: which pods a changed value replaces, from the differences of two renderings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import helm_python
import yaml

from deploy.generate.kustomize_base import NAMESPACE, PROFILE, RELEASE

BEGIN, END = "<!-- upgrade table: python -m deploy.generate -->", "<!-- end of the table -->"
Changes = Mapping[str, tuple[str, dict[str, Any]]]
# value -> (what the row says, another value)
CHANGES: Changes = {
    "images.tag": ("another image", {"images": {"tag": "9.9.9"}}),
    "images.digests.judge": ("one image", {"images": {"digests": {"judge": "sha256:" + "0" * 64}}}),
    "log.level": ("log level", {"log": {"level": "debug"}}),
    "platform.odhVersion": ("platform release", {"platform": {"odhVersion": "3.4"}}),
    "services.coordinator.replicas": ("number of pods", {"services": {"coordinator": {"replicas": 3}}}),
    "services.judge.env": ("a setting of one service", {"services": {"judge": {"env": {"ZELDA_JUDGE__SLOTS": "8"}}}}),
    "services.judge.autoscaling": ("limits of scaling", {"services": {"judge": {"autoscaling": {"max": 9}}}}),
    "services.trainer.resources": (
        "size of the service",
        {"services": {"trainer": {"resources": {"limits": {"memory": "2Gi"}}}}},
    ),
    "runs.defaults": ("defaults of new runs", {"runs": {"defaults": {"epochs": 50}}}),
    "judges.votes": ("votes, prices, phases, judges", {"judges": {"votes": [5, 9]}}),
    "judges.budget": ("budget of an epoch", {"judges": {"budget": {"calls": 500}}}),
    "llm.models.*.replicas": ("vLLM pods", {"llm": {"models": {"puzzle": {"replicas": 2}}}}),
    "llm.models.*.args": ("vLLM arguments", {"llm": {"models": {"puzzle": {"args": ["--seed", "1"]}}}}),
    "rom": ("a ROM", {"rom": {"source": "pvc", "name": "roms", "path": "game.gbc", "sha256": "0" * 64}}),
    "ray.workers.min, max": ("number of workers", {"ray": {"workers": {"min": 5, "max": 5}}}),
    "ray.workers.resources": (
        "size of workers",
        {"ray": {"workers": {"resources": {"requests": {"memory": "7Gi"}}}}},
    ),
    "bus.embedded.resources": ("size of NATS", {"bus": {"embedded": {"resources": {"limits": {"memory": "2Gi"}}}}}),
    "bus.embedded.image": ("NATS image", {"bus": {"embedded": {"image": {"tag": "2.15.2"}}}}),
    "store.embedded.resources": ("size of S3", {"store": {"embedded": {"resources": {"limits": {"memory": "2Gi"}}}}}),
    "store.keepSegmentsDays": ("life of segments", {"store": {"keepSegmentsDays": 90}}),
    "store.ca": ("the store's authority", {"store": {"ca": {"name": "store-ca"}}}),
    "expose.oauth.image": ("log-in proxy", {"expose": {"oauth": {"image": {"tag": "4.21"}}}}),
    "networkPolicies.*": ("network policies", {"networkPolicies": {"clients": ["team-a"]}}),
    "monitoring.*": ("scrapes, alerts, dashboards", {"monitoring": {"interval": "15s"}}),
}


def table(chart: Path) -> str:
    """The rows, with the openshift profile before each change."""
    values = yaml.safe_load((chart / PROFILE).read_text())
    before = _pods(chart, values)
    lines = ["| value | change of | pods that are replaced | training |", "|---|---|---|---|"]
    for value, (what, change) in CHANGES.items():
        after = _pods(chart, _merged(values, change))
        replaced = sorted(name for name in before if before[name] != after.get(name))
        lines.append(f"| `{value}` | {what} | {', '.join(replaced) or 'none'} | {effect(replaced)} |")
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
    with helm_python.Chart.load(chart) as loaded:
        files = loaded.render(values, name=RELEASE, namespace=NAMESPACE, is_install=True)
    objects = [one for name, text in files.items() if name.endswith(".yaml") for one in yaml.safe_load_all(text) if one]
    found: dict[str, Any] = {}
    for one in objects:
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


def _merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in more.items():
        inner = result.get(key)
        result[key] = _merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return result
