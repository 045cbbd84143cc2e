"""The generated files and their sources. The base comes last, because it renders the chart on disk."""

from collections.abc import Iterator
from pathlib import Path

from deploy.generate import alerts, bus_permissions, kustomize_base, upgrade_table, values_files
from deploy.generate.dashboards import DASHBOARDS

CHART = "charts/zelda-rlaif"


def generated(root: Path) -> Iterator[tuple[Path, str]]:
    """(path, content) of every generated file."""
    chart = root / CHART
    yield chart / "values.yaml", values_files.values_yaml()
    yield chart / "values.schema.json", values_files.schema_json()
    yield chart / "README.md", values_files.readme((chart / "README.md.in").read_text())
    yield chart / "files/bus.yaml", bus_permissions.bus_yaml()
    yield chart / "files/alerts.yaml", alerts.alerts_yaml()
    for dashboard in DASHBOARDS:
        yield chart / f"files/dashboards/{dashboard.name}.json", dashboard.to_json()
    guide = root / "docs/upgrade.md"
    yield guide, upgrade_table.page(guide.read_text(), chart)
    yield from ((root / "deploy/base" / name, text) for name, text in kustomize_base.base_files(chart))
