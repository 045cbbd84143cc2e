"""`zelda export`: segments as pictures, JSON lines and video, and a run as one Parquet data set."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.console import data, line
from cli.exits import NOT_FOUND, USAGE, Quit
from cli.files import must_be_directory, must_have_place

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
    """Replay a segment, an episode, an epoch or a whole run, and write manifest, states, frames and video."""
    from services.exporter.request import Selection, export_to

    must_be_directory(to)
    written = _run(lambda: export_to(_exporter_settings(), Selection.of(run, epoch, episode, segment), to))
    if not written:
        raise Quit(NOT_FOUND, f"No recorded segment of {run} fits: look with `zelda run show {run}`.")
    paths = [str(path) for path in written]
    data(paths) if as_json else line("\n".join(paths))


@app.command()
def dataset(
    run: Run,
    to: Annotated[Path, typer.Option("--to", help="the Parquet file to write")] = Path("dataset.parquet"),
    epoch: Epoch = None,
    episode: Episode = None,
    as_json: Json = False,
) -> None:
    """Write observations, actions and scores of recorded segments as one Parquet file, one row a step."""
    from services.exporter.request import Selection, dataset_to

    must_have_place(to)
    rows = _run(lambda: dataset_to(_exporter_settings(), Selection.of(run, epoch, episode, None), to))
    if rows == 0:
        raise Quit(NOT_FOUND, f"No recorded segment of {run} fits: look with `zelda run show {run}`.")
    data({"file": str(to), "rows": rows}) if as_json else line(f"{to}: {rows} steps")


def _exporter_settings() -> Any:
    from cli.direct import settings
    from services.exporter.settings import ExporterSettings

    return settings(ExporterSettings)


def _run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    try:
        return asyncio.run(work())
    except ValueError as error:  # an id that is none
        raise Quit(USAGE, f"{error}.") from error
