"""`zelda export`: segments as pictures, JSON lines and video, and a run as one Parquet data set."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.console import print_json, print_line, print_status
from cli.errors import FAILED, NOT_FOUND, USAGE, CliError
from cli.output_paths import require_directory, require_writable_file

app = typer.Typer(help="Write segments as pictures, videos and data sets.", no_args_is_help=True)
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

    A segment that cannot be exported is named and left out; exit code 1 says that there were some.
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
    _must_be_whole(run, len(paths), len(result.failed))


@app.command()
def dataset(
    run: Run,
    to: Annotated[Path, typer.Option("--to", help="the Parquet file to write")] = Path("dataset.parquet"),
    epoch: Epoch = None,
    episode: Episode = None,
    as_json: Json = False,
) -> None:
    """Write observations, actions and scores of recorded segments as one Parquet file, one row a step.

    A segment that cannot be read is named and left out; exit code 1 says that there were some.
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
    _must_be_whole(run, len(result.exported), len(result.failed))


def _must_be_whole(run: str, done: int, failed: int) -> None:
    """CliError if there was nothing to export, or if some of it could not be."""
    if done + failed == 0:
        raise CliError(NOT_FOUND, f"No recorded segment of {run} fits: look with `zelda run show {run}`.")
    if failed:
        rest = "the rest is written" if done else "nothing is written"
        reasons = "their keys and the reasons stand above"
        raise CliError(FAILED, f"{failed} of {done + failed} segments could not be exported: {reasons}, {rest}.")


def _exporter_settings() -> Any:
    from cli.service_settings import load_settings
    from services.exporter.settings import ExporterSettings

    return load_settings(ExporterSettings)


def _run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    try:
        return asyncio.run(work())
    except ValueError as error:  # an id that is none
        raise CliError(USAGE, f"{error}.") from error
