"""Which files are generated and from what. The base comes last: it is rendered from the chart as it is on disk."""

from collections.abc import Iterator
from pathlib import Path

from deploy.generate import alerts, base, bus, chart_docs
from deploy.generate.dashboards import DASHBOARDS

CHART = "charts/zelda-rlaif"


def generated(root: Path) -> Iterator[tuple[Path, str]]:
    """(path, content) of every generated file."""
    chart = root / CHART
    yield chart / "values.yaml", chart_docs.values_yaml()
    yield chart / "values.schema.json", chart_docs.schema_json()
    yield chart / "README.md", chart_docs.readme((chart / "README.md.in").read_text())
    yield chart / "files/bus.yaml", bus.bus_yaml()
    yield chart / "files/alerts.yaml", alerts.alerts_yaml()
    for dashboard in DASHBOARDS:
        yield chart / f"files/dashboards/{dashboard.name}.json", dashboard.to_json()
    yield from ((root / "deploy/base" / name, text) for name, text in base.base_files(chart))
