"""`zelda export`: segments as PNG frames, JSON lines and video, and a run as one Parquet data set."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.console import print_json, print_line, print_status
from cli.errors import FAILED, NOT_FOUND, USAGE, CliError
from cli.output_paths import require_directory, require_writable_file

app = typer.Typer(help="Export segments as frames, videos and data sets.", no_args_is_help=True)
Run = Annotated[str, typer.Argument(help="name of the run", metavar="RUN")]
Epoch = Annotated[int | None, typer.Option("--epoch", min=0, help="only this epoch")]
Episode = Annotated[str | None, typer.Option("--episode", help="only this episode")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.command()
def segments(
    run: Run,
    to: Annotated[Path, typer.Option("--to", help="directory that receives RUN/epoch_N/EPISODE/SEGMENT/")] = Path(
        "exports"
    ),
    segment: Annotated[str | None, typer.Option("--segment", help="only this segment")] = None,
    episode: Episode = None,
    epoch: Epoch = None,
    as_json: Json = False,
) -> None:
    """Replay a segment, an episode, an epoch or a whole run, and write manifest, states, frames and video.

    Segments that cannot be exported are listed and skipped; the exit code is then 1.
    """
    from services.exporter.on_demand import SegmentSelection, export_segments

    require_directory(to)
    result = _run(
        lambda: export_segments(
            _exporter_settings(), SegmentSelection.parse(run, epoch, episode, segment), to, print_status
        )
    )
    paths = [str(path) for path in result.exported]
    if as_json and (paths or result.failed):
        print_json(paths)
    elif paths:
        print_line("\n".join(paths))
    _require_complete(run, len(paths), len(result.failed))


@app.command()
def dataset(
    run: Run,
    to: Annotated[Path, typer.Option("--to", help="the Parquet file to write")] = Path("dataset.parquet"),
    epoch: Epoch = None,
    episode: Episode = None,
    as_json: Json = False,
) -> None:
    """Write observations, actions and scores of recorded segments to one Parquet file, one row per step.

    Segments that cannot be read are listed and skipped; the exit code is then 1.
    """
    from services.exporter.on_demand import SegmentSelection, export_dataset

    require_writable_file(to)
    result = _run(
        lambda: export_dataset(
            _exporter_settings(), SegmentSelection.parse(run, epoch, episode, None), to, print_status
        )
    )
    if result.exported:
        rows = sum(result.exported)
        print_json({"file": str(to), "rows": rows}) if as_json else print_line(f"{to}: {rows} steps")
    _require_complete(run, len(result.exported), len(result.failed))


def _require_complete(run: str, done: int, failed: int) -> None:
    """CliError if nothing was exported, or if some segments failed."""
    if done + failed == 0:
        raise CliError(NOT_FOUND, f"No recorded segment of {run} matches: check the run with `zelda run show {run}`.")
    if failed:
        rest = "the others were written" if done else "nothing was written"
        reasons = "their keys and the reasons are listed above"
        raise CliError(FAILED, f"{failed} of {done + failed} segments could not be exported: {reasons}; {rest}.")


def _exporter_settings() -> Any:
    from cli.service_settings import load_settings
    from services.exporter.settings import ExporterSettings

    return load_settings(ExporterSettings)


def _run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    try:
        return asyncio.run(work())
    except ValueError as error:  # an invalid id
        raise CliError(USAGE, f"{error}.") from error
