"""Writes the report and the summary of a run to a directory, usually `runs/<id>/`."""

from pathlib import Path

from services.coordinator.report.data import ReportData
from services.coordinator.report.page import render_report


def write_report(data: ReportData, directory: Path) -> None:
    """Write summary.json, report.html and, if there is a video, best.mp4."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "summary.json").write_text(data.summary.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (directory / "report.html").write_text(render_report(data), encoding="utf-8")
    if data.best is not None and data.best.video is not None:
        (directory / "best.mp4").write_bytes(data.best.video)
