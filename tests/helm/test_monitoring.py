"""Dashboards and alerts use only series that services export, and alerts fire when they should."""

import importlib
import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client import REGISTRY

from deploy.generate.alerts import alerts_yaml, of_release
from deploy.generate.dashboards import DASHBOARDS
from deploy.generate.leader import LEADER
from tests.helm.operators.network import selects
from tests.helm.rendering import CHART, ROOT, Object, merged, of_kind, pod_templates, profile, render
from tests.helm.test_chart_objects import EVERYTHING
from tests.required_tools import find_tool, needs

# Series of others: NATS' exporter, vLLM as served by OpenShift AI, every process, and Prometheus itself.
OTHERS = {
    "jetstream_server_total_streams",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:prefix_cache_hits_total",
    "vllm:prefix_cache_queries_total",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "up",
}
MAKES_METRICS = re.compile(r"metrics\.(counter|gauge|seconds)\(")
OF_A_COORDINATOR = re.compile(r"zelda_(?:epoch_|reward_model_|coordinator_active_)\w+(?:\{[^}]*\})?")
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
PROMTOOL = find_tool("promtool")
needs_promtool = needs("promtool")


@cache
def served() -> set[str]:
    """All series names that the services' /metrics can have."""
    for path in sorted([*(ROOT / "services").rglob("*.py"), *(ROOT / "shared").rglob("*.py")]):
        if MAKES_METRICS.search(path.read_text()):
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return set(REGISTRY._names_to_collectors)


def names(expression: str) -> set[str]:
    """The series of an expression; `(kserve_)?vllm:x` counts as `vllm:x`."""
    text = expression.replace("(kserve_)?", "")
    found = {name for name in NAME.findall(text) if name.startswith(("zelda_", "jetstream_", "vllm:", "process_"))}
    return found | ({"up"} if re.search(r"\bup\b", text) else set())


def queries() -> Iterator[tuple[str, str]]:
    for dashboard in DASHBOARDS:
        for panel in dashboard.panels:
            for query in panel.queries:
                yield f"{dashboard.name}: {panel.title}", query.expression


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_every_series_of_a_dashboard_exists() -> None:
    missing = {where: strange for where, text in queries() if (strange := names(text) - served() - OTHERS)}
    assert missing == {}


def test_every_series_of_an_alert_exists() -> None:
    assert {rule["alert"]: names(rule["expr"]) - served() - OTHERS for rule in rules() if not names(rule["expr"])} == {}
    assert [rule["alert"] for rule in rules() if names(rule["expr"]) - served() - OTHERS] == []


def test_coordinator_queries_filter_by_leader() -> None:
    asked = [(where, text, LEADER) for where, text in queries()]
    asked += [(rule["alert"], rule["expr"], of_release(LEADER)) for rule in rules()]
    found = [
        (where, text[end.end() :], leader) for where, text, leader in asked for end in OF_A_COORDINATOR.finditer(text)
    ]
    assert len(found) > 20
    assert [where for where, rest, leader in found if not rest.startswith(leader)] == []


def test_machine_panels_do_not_mix_services_and_drivers() -> None:
    # zelda_build_info counts nothing: it says whose process it is.
    kinds = {where: {name.split("_")[0] for name in names(text) - {"zelda_build_info"}} for where, text in queries()}
    assert [where for where, found in kinds.items() if {"process", "zelda"} <= found] == []


@needs_promtool
@pytest.mark.parametrize("title", ["Processor", "Memory"])
def test_cost_excludes_other_tenants_processes(title: str, tmp_path: Path) -> None:
    (expression,) = (text for where, text in queries() if where == f"cost: {title}")
    ours = '{job="zelda-judge", namespace="z", instance="a"}'
    others = '{job="kubelet", namespace="kube-system", instance="b"}'
    series = [
        {"series": f"{name}{labels}", "values": "0+60x20"}
        for name in ("process_cpu_seconds_total", "process_resident_memory_bytes")
        for labels in (ours, others)
    ]
    build = '{service="judge", version="1", job="zelda-judge", namespace="z", instance="a"}'
    series.append({"series": f"zelda_build_info{build}", "values": "1x20"})
    expected = {"labels": '{job="zelda-judge"}', "value": 1 if title == "Processor" else 600}
    check = {"expr": expression, "eval_time": "10m", "exp_samples": [expected]}
    case = {"interval": "1m", "input_series": series, "promql_expr_test": [check]}
    (tmp_path / "cost.yaml").write_text(yaml.safe_dump({"tests": [case]}))
    done = subprocess.run([str(PROMTOOL), "test", "rules", str(tmp_path / "cost.yaml")], capture_output=True)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_every_query_is_promql() -> None:
    for _, expression in queries():
        promql_parser.parse(expression)


def test_every_panel_filters_by_the_selected_namespaces() -> None:
    for dashboard in DASHBOARDS:
        board = json.loads(dashboard.to_json())
        (choice,) = (one for one in board["templating"]["list"] if one["name"] == "namespace")
        assert (choice["query"], choice["allValue"]) == ("label_values(zelda_build_info, namespace)", ".*")
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                promql_parser.parse(target["expr"])
                selectors = re.findall(r'{(?! *")[^}]*}|\b(?:zelda|process)_\w+(?!\w*{)', target["expr"])
                assert selectors, target["expr"]
                assert [one for one in selectors if not one.startswith('{namespace=~"$namespace"')] == []


def test_the_three_committed_dashboards_are_current() -> None:
    assert sorted(path.stem for path in (CHART / "files/dashboards").glob("*.json")) == ["cost", "flow", "learning"]
    for dashboard in DASHBOARDS:
        committed = (CHART / f"files/dashboards/{dashboard.name}.json").read_text()
        assert committed == dashboard.to_json(), "run `python -m deploy.generate`"


def test_panels_explain_themselves_and_do_not_overlap() -> None:
    for dashboard in DASHBOARDS:
        assert all(panel.help and panel.queries for panel in dashboard.panels)
        for title, row in dashboard.rows:
            assert 24 // len(row) >= 4, f"{dashboard.name}/{title} has too many panels side by side"


@pytest.mark.parametrize(
    ("alert", "title"), [("UpdatesTooLarge", "KL of an update"), ("JudgesDisagree", "Krippendorff's alpha")]
)
def test_panels_and_alerts_share_thresholds(alert: str, title: str) -> None:
    (rule,) = (rule for rule in rules() if rule["alert"] == f"Zelda{alert}")
    (text,) = (panel.help for board in DASHBOARDS for panel in board.panels if panel.title == title)
    assert re.findall(r"[<>] ([0-9.]+)$", rule["expr"]) == re.findall(r"(?:Above|Below) ([0-9.]+) ", text)


def test_the_committed_alerts_are_current() -> None:
    assert (CHART / "files/alerts.yaml").read_text() == alerts_yaml(), "run `python -m deploy.generate`"


@needs_promtool
def test_promtool_accepts_the_alert_rules(tmp_path: Path) -> None:
    done = subprocess.run([str(PROMTOOL), "check", "rules", str(CHART / "files/alerts.yaml")], capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_each_alert_fires_when_it_should_and_only_then() -> None:
    done = subprocess.run(
        [str(PROMTOOL), "test", "rules", "alerts.test.yaml"], cwd=Path(__file__).parent, capture_output=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_each_alert_has_a_firing_and_a_healthy_case() -> None:
    cases = yaml.safe_load((Path(__file__).parent / "alerts.test.yaml").read_text())["tests"]
    *firing, healthy = cases
    alerts = {rule["alert"] for rule in rules()}
    assert {case["name"] for case in firing if case["alert_rule_test"][0]["exp_alerts"]} == alerts
    assert {check["alertname"] for check in healthy["alert_rule_test"] if not check["exp_alerts"]} == alerts


def test_each_alert_links_to_a_section_of_the_runbook() -> None:
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    wanted = {rule["annotations"]["runbook_url"].partition("#")[2] for rule in rules()}
    assert wanted - anchors == set()


def test_the_chart_carries_the_same_rules() -> None:
    objects = render(profile("prod"))
    (rule,) = of_kind(objects, "PrometheusRule")
    assert [r["alert"] for group in rule["spec"]["groups"] for r in group["rules"]] == [r["alert"] for r in rules()]


def rendered_rules(objects: list[Object]) -> dict[str, str]:
    """Alert -> expression in the release."""
    (rule,) = of_kind(objects, "PrometheusRule")
    return {one["alert"]: one["expr"] for group in rule["spec"]["groups"] for one in group["rules"]}


def test_a_service_that_rests_is_not_missed() -> None:
    resting = {"services": {"exporter": {"replicas": 0}, "judge": {"autoscaling": {"min": 0}}}}
    missing = rendered_rules(render(merged(profile("prod"), resting)))["ZeldaServiceMissing"]
    assert set(re.findall(r'job="(.+?)"', missing)) == {f"zelda-{n}" for n in ("coordinator", "trainer", "rewardmodel")}


def test_a_judge_scaled_by_cpu_never_rests() -> None:
    """Its autoscaler keeps one pod, even if the values say 0."""
    values = merged(profile("prod"), {"services": {"judge": {"autoscaling": {"mode": "cpu", "min": 0}}}})
    assert 'job="zelda-judge"' in rendered_rules(render(values))["ZeldaServiceMissing"]


def test_embedded_servers_and_jobs_of_ray_are_scraped() -> None:
    objects = render(merged(merged(profile("openshift"), {"apis": {"ray": "on"}}), EVERYTHING))
    found: dict[str, set[str]] = {}
    for monitor in of_kind(objects, "PodMonitor"):
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        pods = [
            (o, p) for o, p in pod_templates(objects) if selects(monitor["spec"]["selector"], p["metadata"]["labels"])
        ]
        named_ports = {
            port["name"] for _, pod in pods for c in pod["spec"]["containers"] for port in c.get("ports", [])
        }
        assert endpoint["port"] in named_ports
        found[monitor["metadata"]["name"]] = {owner for owner, _ in pods}
    assert found["zelda-nats"] == {"StatefulSet/zelda-nats"}
    assert found["zelda-s3"] == {"StatefulSet/zelda-s3"}
    assert "RayJob/zelda-epoch/head" in found["zelda-ray"]


def test_figures_of_a_run_are_told_apart_by_run() -> None:
    (board,) = (json.loads(one.to_json()) for one in DASHBOARDS if one.name == "learning")
    (choice,) = (one for one in board["templating"]["list"] if one["name"] == "run")
    assert choice["query"] == 'label_values(zelda_epoch_number{namespace=~"$namespace"}, run)'
    targets = [target for panel in board["panels"] for target in panel.get("targets", [])]
    own = [target for target in targets if re.search("zelda_(epoch|reward_model)_", target["expr"])]
    assert len(own) > 15
    assert [target["expr"] for target in own if 'run=~"$run"' not in target["expr"]] == []
    assert [target["legendFormat"] for target in own if not target["legendFormat"].startswith("{{run}}")] == []


@pytest.mark.parametrize("more", [{}, {"fullnameOverride": "oracle"}], ids=["zelda", "oracle"])
def test_down_services_of_other_tenants_raise_no_alert(more: dict[str, Any]) -> None:
    objects = render(profile("prod") | more)
    expressions = rendered_rules(objects)
    text, missing = expressions["ZeldaServiceDown"], expressions["ZeldaServiceMissing"]
    (pattern,) = re.findall(r'job=~"(.+?)"', text)
    scraped = {one["metadata"]["name"] for one in of_kind(objects, "ServiceMonitor")}
    assert len(scraped) == 5
    assert {name for name in scraped if f'absent(up{{job="{name}"}})' not in missing} == set()
    assert {name for name in scraped if not re.fullmatch(pattern, name)} == set()
    assert not re.fullmatch(pattern, "prometheus-node-exporter")


FAILURES = {
    "ZeldaNoLeader": (
        'zelda_lease_held_ratio{lease="coordinator", instance="NAME", NAMED-coordinator"}',
        "0x40",
        "1x40",
    ),
    "ZeldaConsumerSilent": (
        'zelda_bus_last_fetch_timestamp_seconds{consumer="judge-segments", NAMED-judge"}',
        "0x40",
        "0+60x40",
    ),
    "ZeldaStoreRefusesWrites": ('zelda_store_last_write_timestamp_seconds{NAMED-judge"}', "60x40", "60+60x40"),
}


@needs_promtool
@pytest.mark.parametrize("alert", FAILURES)
def test_a_healthy_neighbour_hides_no_failure(alert: str, tmp_path: Path) -> None:
    """Two releases in one namespace: the alert fires in the release that fails, and in no other one."""
    series, failing, healthy = FAILURES[alert]
    given = [
        {"series": series.replace("NAMED", f'namespace="z", job="{name}').replace("NAME", name), "values": values}
        for name, values in (("link", failing), ("zelda", healthy))
    ]
    for name, fires in (("link", True), ("zelda", False)):
        (rule,) = of_kind(render(profile("prod"), release=name), "PrometheusRule")
        (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": rule["spec"]["groups"]}))
        (one,) = (r for group in rule["spec"]["groups"] for r in group["rules"] if r["alert"] == alert)
        labels = {"namespace": "z", "severity": "critical"}
        labels |= {"consumer": "judge-segments"} if "consumer" in series else {}
        notes = {k: v.replace("{{ $labels.consumer }}", "judge-segments") for k, v in one["annotations"].items()}
        expected = [{"exp_labels": labels, "exp_annotations": notes}] if fires else []
        check = {"alertname": alert, "eval_time": "20m", "exp_alerts": expected}
        case = {"interval": "1m", "input_series": given, "alert_rule_test": [check]}
        (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [case]}))
        done = subprocess.run([str(PROMTOOL), "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("more", [{}, {"fullnameOverride": "oracle"}], ids=["zelda", "oracle"])
def test_streams_of_another_bus_raise_no_alert(more: dict[str, Any]) -> None:
    objects = render(profile("prod") | more)
    (pattern,) = re.findall(r'job=~"(.+?)"', rendered_rules(objects)["ZeldaStreamsMissing"])
    monitors = [one["metadata"]["name"] for one in of_kind(objects, "PodMonitor")]
    # The operator calls the job of a PodMonitor NAMESPACE/NAME.
    matching = [name for name in monitors if re.fullmatch(pattern, f"rl/{name}")]
    assert matching == [f"{more.get('fullnameOverride', 'zelda')}-nats"]
    assert not re.fullmatch(pattern, "rl/nats")


def test_a_grafana_of_another_namespace_shows_the_dashboards() -> None:
    """By default the operator imports only into a Grafana of the same namespace, whose policies deny it all data."""
    objects = render(merged(profile("prod"), {"monitoring": {"grafana": {"folder": "RL: 7"}}}))
    boards = of_kind(objects, "GrafanaDashboard")
    assert [one["spec"]["allowCrossNamespaceImport"] for one in boards] == [True] * 3
    assert {one["spec"]["folder"] for one in boards} == {"RL: 7"}


def test_the_chart_carries_the_same_dashboards() -> None:
    objects = render(profile("prod"))
    boards = of_kind(objects, "GrafanaDashboard")
    files = {one["metadata"]["name"]: set(one["data"]) for one in of_kind(objects, "ConfigMap")}
    assert len(boards) == 3
    for board in boards:
        reference = board["spec"]["configMapRef"]
        assert files[reference["name"]] == {reference["key"]}
