"""`zelda export`: segments as PNG frames, JSON lines and video, and a run as a data set (Parquet or Minari)."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.commands import export_trackers
from cli.console import overwrite_line, print_json, print_line, print_status
from cli.errors import FAILED, NOT_FOUND, USAGE, CliError
from cli.output_paths import VIDEO, require_directory, require_writable_file
from cli.service_settings import reachable_store
from cli.stored_runs import read_store
from cli.unknown_run import require_run

if TYPE_CHECKING:
    from services.exporter.on_demand import SegmentSelection

app = typer.Typer(help="Export segments as frames, videos and data sets.", no_args_is_help=True)
app.add_typer(export_trackers.app)
SEGMENTS_FOLDER: Final = Path("exports")
Run = Annotated[str, typer.Argument(help="name of the run", metavar="RUN")]
Epoch = Annotated[int | None, typer.Option("--epoch", min=0, help="only this epoch")]
Episode = Annotated[str | None, typer.Option("--episode", help="only this episode")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.command()
def segments(
    run: Run,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="directory that receives RUN/epoch_N/EPISODE/SEGMENT/; default: exports"),
    ] = None,
    segment: Annotated[str | None, typer.Option("--segment", help="only this segment")] = None,
    episode: Episode = None,
    epoch: Epoch = None,
    best: Annotated[int | None, typer.Option("--best", min=1, help="only the N segments with the best scores")] = None,
    video_only: Annotated[bool, typer.Option("--video-only", help="omit the picture of each step")] = False,
    video: Annotated[
        Path | None, typer.Option("--video", help="write all selected segments as one MP4 file instead")
    ] = None,
    whole_episodes: Annotated[
        bool,
        typer.Option("--whole-episodes", help="with --video: each episode from its start, also what no segment holds"),
    ] = False,
    as_json: Json = False,
) -> None:
    """Replay a segment, an episode, an epoch or a whole run, and write manifest, states, frames and video.

    Segments that cannot be exported are listed and skipped; the exit code is then 1.
    """
    from services.exporter.on_demand import export_segments

    selection = _selection(run, epoch, episode, segment, best)
    if video is not None:
        if to is not None or video_only:
            raise CliError(USAGE, "--video writes one file and no folders: leave out --to and --video-only.")
        _export_video(run, selection, video, whole_episodes, as_json)
        return
    if whole_episodes:
        raise CliError(USAGE, "--whole-episodes makes a video: name its file by --video.")
    folder = to or SEGMENTS_FOLDER
    require_directory(folder)
    result = _run(
        lambda: export_segments(_exporter_settings(video_only), selection, folder, _print_above_progress, show_progress)
    )
    paths = [str(path) for path in result.exported]
    if as_json and (paths or result.failed):
        print_json(paths)
    elif paths:
        print_line("\n".join(paths))
    _require_complete(selection, len(paths), len(result.failed))


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
    from services.exporter.on_demand import export_dataset

    require_writable_file(to)
    selection = _selection(run, epoch, episode)
    result = _run(lambda: export_dataset(_exporter_settings(), selection, to, _print_above_progress, show_progress))
    if result.exported:
        rows = sum(result.exported)
        print_json({"file": str(to), "rows": rows}) if as_json else print_line(f"{to}: {rows} steps")
    _require_complete(selection, len(result.exported), len(result.failed))


@app.command()
def minari(
    run: Run,
    to: Annotated[Path, typer.Option("--to", help="directory of Minari data sets; receives RUN-v0/")] = Path("minari"),
    epoch: Epoch = None,
    episode: Episode = None,
    best: Annotated[int | None, typer.Option("--best", min=1, help="only the N segments with the best scores")] = None,
) -> None:
    """Write judged segments as a Minari data set, one episode per segment. Needs the extra `minari`.

    The last reward of an episode is the judges' score, because rewards of single steps are not recorded.
    """
    from cli.exports.minari_dataset import MinariWriter
    from services.exporter.on_demand import export_rows

    require_directory(to)
    selection = _selection(run, epoch, episode, best=best)
    with MinariWriter(to, selection.run) as writer:
        result = _run(
            lambda: export_rows(_exporter_settings(), selection, writer.add, _print_above_progress, show_progress)
        )
    if writer.skipped:
        print_status(f"{writer.skipped} segments without a score were left out.")
    if writer.steps:
        print_line(f"{to}/{run}-v0: {writer.steps} steps; read it with MINARI_DATASETS_PATH={to}")
    _require_complete(selection, len(result.exported) - writer.skipped, len(result.failed), "judged")


def _selection(
    run: str, epoch: int | None, episode: str | None, segment: str | None = None, best: int | None = None
) -> "SegmentSelection":
    """Parse the words that select segments; CliError for one that is not a valid id."""
    from services.exporter.on_demand import SegmentSelection

    try:
        return SegmentSelection.parse(run, epoch, episode, segment, best)
    except ValueError as error:
        raise CliError(USAGE, f"{error}.") from error


def _require_complete(selection: "SegmentSelection", done: int, failed: int, kind: str = "recorded") -> None:
    """CliError if nothing was exported, or if some segments failed. `kind` says which segments are exported."""
    if done + failed == 0:
        run, kind = selection.run, "judged" if selection.best else kind
        read_store(lambda store: require_run(store, run))
        raise CliError(NOT_FOUND, f"No {kind} segment of {run} matches: check the run with `zelda run show {run}`.")
    if failed:
        rest = "the others were written" if done else "nothing was written"
        reasons = "their keys and the reasons are listed above"
        raise CliError(FAILED, f"{failed} of {done + failed} segments could not be exported: {reasons}; {rest}.")


def _export_video(run: str, selection: "SegmentSelection", video: Path, whole_episodes: bool, as_json: bool) -> None:
    from services.exporter.on_demand import export_video

    require_writable_file(video, VIDEO)
    result = _run(
        lambda: export_video(
            _exporter_settings(), selection, video, _print_above_progress, show_progress, whole_episodes
        )
    )
    if result.exported:
        steps = sum(result.exported)
        print_json({"file": str(video), "steps": steps}) if as_json else print_line(f"{video}: {steps} steps")
    _require_complete(selection, len(result.exported), len(result.failed))


def _print_above_progress(text: str) -> None:
    """Print a line that the progress line does not run into."""
    overwrite_line("")
    print_status(text)


def show_progress(done: int, total: int) -> None:
    """Show how many segments are done, on a terminal."""
    overwrite_line(f"{done} of {total} segments")


def _exporter_settings(video_only: bool = False) -> Any:
    from cli.service_settings import load_settings
    from services.exporter.settings import ExporterSettings

    own = load_settings(ExporterSettings)
    return own.model_copy(update={"export": own.export.model_copy(update={"frames": False})}) if video_only else own


def _run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    try:
        with reachable_store():
            return asyncio.run(work())
    finally:
        overwrite_line("")
