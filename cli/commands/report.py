"""`zelda report`: write the report of a run from what the store holds, also while no system runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import print_line
from cli.errors import NOT_FOUND, CliError
from cli.output_paths import require_directory
from cli.run_arguments import parse_run_id
from cli.runs.options import Name
from cli.stored_runs import read_store
from cli.unknown_run import require_summary

if TYPE_CHECKING:
    from services.coordinator.report.data import ReportData
    from shared.store.port import Store

app = typer.Typer(
    help="Write the report of a run: verdict, first and best play, epochs, charts, judges, rooms.",
    context_settings={"allow_interspersed_args": True},  # options may follow RUN
)


@app.callback(invoke_without_command=True)
def report(
    name: Name,
    out: Annotated[Path, typer.Option(help="directory that receives the folder of the run")] = Path("runs"),
) -> None:
    """Write report.html, summary.json and, if there is one, best.mp4 to OUT/RUN/."""
    from cli.runs.report_files import write_report
    from services.coordinator.report.data import collect_report_data

    run = parse_run_id(name)
    require_directory(out)

    async def collected(store: "Store") -> "ReportData":
        await require_summary(store, run)
        return await collect_report_data(store, run)

    data = read_store(collected, run)
    if not data.rows:
        raise CliError(NOT_FOUND, f"{run} has no finished epoch yet: see `zelda run show {run}`.")
    write_report(data, out / run)
    print_line(str(out / run / "report.html"))
