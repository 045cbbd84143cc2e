"""`zelda export tensorboard`, `mlflow` and `wandb`: the figures of a run for the tools that people already use."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.console import overwrite_line, print_line
from cli.errors import FAILED, NOT_FOUND, USAGE, CliError
from cli.output_paths import require_directory
from cli.run_arguments import parse_run_id
from cli.runs.options import Name
from cli.service_settings import reachable_store
from shared.contracts.ids import RunId

if TYPE_CHECKING:
    from services.exporter.adapters.trackers import Tracker

app = typer.Typer()
SHOWN: Final = 40  # characters of a refused name: a longer one hides the reason
Follow = Annotated[bool, typer.Option("--follow", help="continue until the run ends")]


@app.command()
def tensorboard(
    name: Name,
    to: Annotated[Path, typer.Option("--to", help="log directory; the run gets a folder in it")] = Path("tensorboard"),
    follow: Follow = False,
) -> None:
    """Write the figures of every epoch as TensorBoard event files; with --follow also those of future epochs."""
    from services.exporter.adapters.trackers import TensorBoardTracker

    require_directory(to)
    _feed(name, follow, lambda run, config: TensorBoardTracker(to / run, config))
    print_line(f"{to / parse_run_id(name)}: open it with  tensorboard --logdir {to}")


@app.command()
def mlflow(
    name: Name,
    uri: Annotated[str, typer.Option(help="address of the tracking server")] = "http://127.0.0.1:5000",
    experiment: Annotated[str, typer.Option(help="name of the experiment")] = "zelda",
    follow: Follow = False,
) -> None:
    """Send configuration and figures to MLflow as one run. Needs the extra `mlflow`."""
    from mlflow.exceptions import MlflowException

    from services.exporter.adapters.trackers import MlflowTracker

    try:
        _feed(name, follow, lambda run, config: MlflowTracker(uri, experiment, run, config))
    except MlflowException as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise CliError(FAILED, f"MLflow at {uri}: {reason}. Check --uri, and that its server runs.") from error
    print_line(f"{uri}: experiment {experiment}, run {name}")


@app.command()
def wandb(
    name: Name,
    to: Annotated[Path, typer.Option("--to", help="directory that receives the offline run")] = Path("wandb-export"),
    project: Annotated[str, typer.Option(help="name of the project")] = "zelda",
    follow: Follow = False,
) -> None:
    """Write configuration and figures as an offline run of Weights & Biases. Needs the extra `wandb`."""
    from services.exporter.adapters.trackers import WandbTracker

    require_directory(to)
    made: list[WandbTracker] = []

    def make(run: RunId, config: Mapping[str, Any]) -> WandbTracker:
        from wandb.errors import UsageError

        to.mkdir(parents=True, exist_ok=True)
        try:
            made.append(WandbTracker(to, project, run, config))
        except UsageError as error:
            shown = project if len(project) <= SHOWN else f"{project[:SHOWN]}…"
            reason = str(error).replace(f"'{project}'", f"'{shown}'").rstrip(".")
            raise CliError(USAGE, f"W&B: {reason}: choose another --project.") from error
        return made[0]

    _feed(name, follow, make)
    print_line(f"{made[0].folder}: send it with  wandb sync {made[0].folder}")


def _feed(name: str, follow: bool, make: Callable[[RunId, Mapping[str, Any]], "Tracker"]) -> None:
    """Feed the run to a new tracker."""
    from cli.exports.trackers import feed, read_summary
    from services.exporter.adapters.trackers import flat_config

    run = parse_run_id(name)
    with reachable_store():  # once, and not again for every look with --follow
        first = read_summary(run)
        if not first.epochs and not follow:
            raise CliError(NOT_FOUND, f"{run} has no finished epoch yet: use --follow, or try again later.")
        tracker = make(run, flat_config(first.config.model_dump(mode="json")))
        try:
            feed(tracker, first, lambda: read_summary(run), follow)
        finally:
            tracker.close()
            overwrite_line("")
