"""Checks which dashboard queries have data, and draws the dashboards from the same queries."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from deploy.generate.dashboards import DASHBOARDS, Dashboard
from deploy.generate.dashboards.flow import LLM
from deploy.generate.dashboards.model import DashboardPanel
from deploy.watch.prometheus import Prometheus

COLUMNS = 3
Line = tuple[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class QueryResult:
    """The result of one query. `needs` names what a laptop lacks; without it, data is expected."""

    dashboard: str
    panel: str
    series: int
    example: str
    needs: str

    @property
    def missing(self) -> bool:
        """Whether expected data is missing."""
        return self.series == 0 and not self.needs


def query_results(server: Prometheus) -> Iterator[QueryResult]:
    """One result per query of every dashboard."""
    for dashboard in DASHBOARDS:
        for panel in dashboard.panels:
            for query in panel.queries:
                found = server.query(query.expression)
                example = found[0]["value"][1][:10] if found else "-"
                yield QueryResult(dashboard.name, panel.title, len(found), example, panel.needs)


def table(found: list[QueryResult]) -> str:
    """The results as a table."""
    lines = []
    for one in found:
        state = "no data" if one.missing else f"needs {one.needs}" if not one.series else f"{one.series} series"
        lines.append(f"{one.dashboard:<9} {one.panel:<38} {state:<16} {one.example}")
    return "\n".join(lines) + "\n"


def draw_dashboard(server: Prometheus, dashboard: Dashboard, begin: float, end: float, path: Path) -> None:
    """Draw all panels of a dashboard from Grafana's queries."""
    from matplotlib import pyplot

    panels = [panel for panel in dashboard.panels if panel.needs != LLM]
    rows = -(-len(panels) // COLUMNS)
    figure, axes = pyplot.subplots(rows, COLUMNS, figsize=(5 * COLUMNS, 2.6 * rows), squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    for axis, panel in zip(axes.flat, panels, strict=False):
        _draw_panel(axis, panel, _lines(server, panel, begin, end), begin)
    figure.suptitle(f"{dashboard.title}   {datetime.now(UTC):%Y-%m-%d}", fontsize=13)
    figure.tight_layout(rect=(0, 0, 1, 0.985))
    figure.savefig(path, dpi=70)
    pyplot.close(figure)


def _lines(server: Prometheus, panel: DashboardPanel, begin: float, end: float) -> list[Line]:
    """The panel's lines with their legends, largest first."""
    lines = [
        (_legend(query.legend, labels), points)
        for query in panel.queries
        for labels, points in server.query_range(query.expression, begin, end)
    ]
    return sorted(lines, key=lambda line: -max((abs(value) for _, value in line[1]), default=0.0))[:8]


def _legend(pattern: str, labels: Mapping[str, str]) -> str:
    """Grafana's legend with the labels filled in."""
    return re.sub(r"{{(\w+)}}", lambda label: labels.get(label[1], ""), pattern)


def _draw_panel(axis, panel: DashboardPanel, lines: list[Line], begin: float) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    axis.set_title(panel.title, fontsize=9)
    axis.tick_params(labelsize=7)
    axis.grid(alpha=0.3)
    for name, points in lines:
        axis.plot([at - begin for at, _ in points], [value for _, value in points], label=name[:30], linewidth=1.2)
    if any(name for name, _ in lines):
        axis.legend(fontsize=6, loc="best")
    axis.set_xlabel("seconds", fontsize=7)
    if not lines:
        axis.text(0.5, 0.5, "no data", ha="center", va="center", transform=axis.transAxes, fontsize=8)
