"""Writes the report and the summary of a run to a directory, usually `runs/<id>/`."""

from pathlib import Path

from services.coordinator.report.data import ReportData
from services.coordinator.report.page import render_report
from shared.process.whole_file import write_whole_file


def write_report(data: ReportData, directory: Path) -> None:
    """Write summary.json, report.html and, if there is a video, best.mp4."""
    directory.mkdir(parents=True, exist_ok=True)
    write_whole_file(directory / "summary.json", f"{data.summary.model_dump_json(indent=2)}\n".encode())
    write_whole_file(directory / "report.html", render_report(data).encode())
    if data.best is not None and data.best.video is not None:
        write_whole_file(directory / "best.mp4", data.best.video)
