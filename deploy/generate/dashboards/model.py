"""A dashboard as rows of panels, and its Grafana JSON.

The JSON is what Grafana 10 and later import: https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["timeseries", "stat", "table"]
WIDTH, HEIGHT = 24, 7
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# One Prometheus may scrape several releases: without this filter, their figures would be added up.
SELECTED_NAMESPACES = 'namespace=~"$namespace"'
# Learning figures have a series for each active run.
SELECTED_RUNS = ', run=~"$run"'
RUNS = 'label_values(zelda_epoch_number{namespace=~"$namespace"}, run)'
JUDGING = ("agreement_ratio", "krippendorff_alpha", "progress_correlation", "canary_drift")
OF_A_RUN = ("zelda_epoch_", "zelda_reward_model_", *(f"zelda_judge_{figure}" for figure in JUDGING))
SERIES = re.compile(r"\b(?P<name>(?:zelda|process)_\w+)(?P<selector>{)?|{(?=__name__)")


@dataclass(frozen=True)
class Query:
    """One PromQL expression. `legend` uses Grafana's `{{label}}`."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class DashboardPanel:
    """One panel. `unit` is a Grafana unit (short, s, reqps, percentunit). `needs` names what a laptop lacks."""

    title: str
    queries: tuple[Query, ...]
    help: str
    unit: str = "short"
    kind: Kind = "timeseries"
    needs: str = ""


@dataclass(frozen=True)
class Dashboard:
    """Titled rows of panels."""

    name: str
    title: str
    question: str
    rows: tuple[tuple[str, tuple[DashboardPanel, ...]], ...]

    @property
    def panels(self) -> list[DashboardPanel]:
        """All panels in order."""
        return [panel for _, row in self.rows for panel in row]

    def to_json(self) -> str:
        """The JSON that Grafana imports."""
        panels: list[dict[str, Any]] = []
        top = 0
        for title, row in self.rows:
            panels.append(_row(title, len(panels) + 1, top))
            width = WIDTH // len(row)
            for column, panel in enumerate(row):
                panels.append(_panel(panel, len(panels) + 1, column * width, top + 1, width))
            top += HEIGHT + 1
        return json.dumps(self._frame(panels), indent=1, ensure_ascii=False) + "\n"

    def _frame(self, panels: list[dict[str, Any]]) -> dict[str, Any]:
        datasource = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
        namespace = {
            "name": "namespace",
            "type": "query",
            "label": "Namespace",
            "datasource": SOURCE,
            "definition": "label_values(zelda_build_info, namespace)",
            "query": "label_values(zelda_build_info, namespace)",
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }
        runs = [
            {
                **namespace,
                "name": "run",
                "label": "Run",
                "definition": RUNS,
                "query": RUNS,
            }
        ]
        if not any(name in query.expression for one in self.panels for query in one.queries for name in OF_A_RUN):
            runs = []
        return {
            "uid": f"zelda-{self.name}",
            "title": self.title,
            "description": self.question,
            "tags": ["zelda-rlaif"],
            "schemaVersion": 39,
            "version": 1,
            "editable": False,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "templating": {"list": [datasource, namespace, *runs]},
            "annotations": {"list": []},
            "panels": panels,
        }


def panel(
    title: str, expression: str, help_text: str, unit: str = "short", legend: str = "", **more: Any
) -> DashboardPanel:
    """A panel with one query."""
    return DashboardPanel(title, (Query(expression, legend),), help_text, unit, **more)


def in_selected_namespaces(expression: str) -> str:
    """The expression, filtered by the namespaces selected at the top of the dashboard."""

    def narrowed(series: re.Match[str]) -> str:
        if series["name"] is None:
            return f"{{{SELECTED_NAMESPACES}, "
        runs = SELECTED_RUNS if series["name"].startswith(OF_A_RUN) else ""
        return f"{series['name']}{{{SELECTED_NAMESPACES}{runs}{', ' if series['selector'] else '}'}"

    return SERIES.sub(narrowed, expression)


def _legend(query: Query) -> str:
    """The query's legend, with the run where it has one."""
    of_a_run = any(name in query.expression for name in OF_A_RUN)
    return f"{{{{run}}}} {query.legend}".strip() if of_a_run else query.legend


def _row(title: str, number: int, top: int) -> dict[str, Any]:
    place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}


def _panel(panel: DashboardPanel, number: int, left: int, top: int, width: int) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + index),
            "expr": in_selected_namespaces(query.expression),
            "legendFormat": _legend(query),
            "datasource": SOURCE,
            "range": panel.kind == "timeseries",
            "instant": panel.kind != "timeseries",
        }
        for index, query in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help + (f" Needs {panel.needs}." if panel.needs else ""),
        "datasource": SOURCE,
        "gridPos": {"x": left, "y": top, "w": width, "h": HEIGHT},
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit, "noValue": "no data yet"}, "overrides": []},
        "options": {} if panel.kind != "timeseries" else {"legend": {"displayMode": "list", "placement": "bottom"}},
    }
