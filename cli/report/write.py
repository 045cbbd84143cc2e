"""Writes a run's report and its summary to a directory, usually `runs/<id>/`."""

from pathlib import Path

from cli.report.data import ReportData
from cli.report.page import render_report


def write_report(material: ReportData, directory: Path) -> None:
    """Write summary.json and report.html, and the best segment's video where there is one."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "summary.json").write_text(material.summary.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (directory / "report.html").write_text(render_report(material), encoding="utf-8")
    if material.best is not None:
        (directory / "best.mp4").write_bytes(material.best.video)
