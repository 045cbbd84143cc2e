"""`zelda run`: start, stop, resume, list, show and watch runs, and read logs; a REST client without own logic."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.client import CoordinatorClient, find_connection, open_client
from cli.console import format_epoch, format_number, print_epochs, print_json, print_line, print_table, run_status
from cli.errors import FAILED, OK, USAGE, CliError
from cli.run_arguments import load_config_file, parse_fields, parse_run_id
from shared.config.groups import GROUPS

if TYPE_CHECKING:
    pass

app = typer.Typer(help="Start, watch, stop and resume runs.", no_args_is_help=True)
Url = Annotated[str | None, typer.Option("--url", help="URL of the coordinator; default: the local system")]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="file with a token of that coordinator")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="name of the run", metavar="RUN")]


@app.command()
def start(
    name: Annotated[
        str | None, typer.Argument(help="name of the run; default: a generated name", metavar="RUN")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", "-s", help="a field, e.g. -s world=garden -s shaping.mode=none")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="JSON file with the configuration")] = None,
    key: Annotated[
        str | None, typer.Option("--idempotency-key", help="requests with the same key start only one run")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="show the progress until the run ends")] = False,
    overlap: Annotated[bool, typer.Option("--overlap", help="do not wait for the judges between epochs")] = False,
    as_json: Json = False,
    url: Url = None,
    token_file: TokenFile = None,
) -> None:
    """Start a run. Every field has a default; the page /docs of the coordinator lists all fields."""
    body: dict[str, Any] = {"config": parse_fields(set_ or [], base=load_config_file(config))}
    if overlap:
        body["config"]["overlap"] = True
    if name is not None:
        body["run"] = name
    with open_client(find_connection(url, token_file)) as client:
        record = client.post("/runs", body, {"Idempotency-Key": key} if key else None)
        print_json(record) if as_json else print_line(record["run"])
        if watch:
            raise typer.Exit(watch_to_exit_code(client, record["run"], as_json))


@app.command()
def stop(name: Name, as_json: Json = False, url: Url = None, token_file: TokenFile = None) -> None:
    """Stop a run after a checkpoint; `zelda run resume` continues it."""
    _post_command(name, "stop", as_json, url, token_file)


@app.command()
def resume(name: Name, as_json: Json = False, url: Url = None, token_file: TokenFile = None) -> None:
    """Resume a stopped or failed run from its last checkpoint."""
    _post_command(name, "resume", as_json, url, token_file)


@app.command("list")
def list_runs(
    state: Annotated[str | None, typer.Option(help="only runs in this state")] = None,
    as_json: Json = False,
    url: Url = None,
    token_file: TokenFile = None,
) -> None:
    """List all runs, newest first."""
    with open_client(find_connection(url, token_file)) as client:
        runs = list(pages(client, "/runs", state=state))
    if as_json:
        print_json(runs)
        return
    rows = [
        [run["run"], run["state"], run["world"], format_epoch(run["epoch"], run["epochs_planned"]), run["created"][:19]]
        for run in runs
    ]
    print_table("Runs", ("run", "state", "world", "epoch", "created"), rows)


@app.command()
def show(name: Name, as_json: Json = False, url: Url = None, token_file: TokenFile = None) -> None:
    """Show the state and the progress of a run, and one line per finished epoch."""
    with open_client(find_connection(url, token_file)) as client:
        run, epochs = client.get(f"/runs/{parse_run_id(name)}"), client.get(f"/runs/{name}/epochs")
    if as_json:
        print_json({**run, "epochs": epochs})
        return
    record, progress = run["record"], run["progress"] or {}
    print_line(run_status(name, record))
    print_line(f"{progress.get('doing', '')} {format_number(progress.get('steps_per_s'), '{:.0f} steps/s')}".strip())
    print_epochs(f"Epochs of {name}", epochs)


@app.command()
def watch(name: Name, as_json: Json = False, url: Url = None, token_file: TokenFile = None) -> None:
    """Show the progress of a run until it ends; prints plain lines without a terminal."""
    with open_client(find_connection(url, token_file)) as client:
        raise typer.Exit(watch_to_exit_code(client, parse_run_id(name), as_json))


@app.command()
def logs(
    process: Annotated[str, typer.Argument(help=f"{', '.join(GROUPS)}, rules-judge, bus, store", metavar="PROCESS")],
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="number of lines")] = 50,
) -> None:
    """Print the last log lines of one process of the local system."""
    path = Path("runs/.local/logs") / f"{Path(process).name}.log"
    if not path.exists():
        names = ", ".join(sorted(file.stem for file in path.parent.glob("*.log")))
        advice = f"choose from {names}" if names else "start a system with `zelda up`, or read the log of the pod"
        raise CliError(USAGE, f"The log file {path} does not exist: {advice}.")
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]:
        print_line(text)


def watch_to_exit_code(client: CoordinatorClient, name: str, as_json: bool) -> int:
    """Show a run until it ends; return 0 if it finished or was stopped, else 1."""
    from cli.watch import watch_run

    return OK if watch_run(client, name, as_json) in ("finished", "stopped") else FAILED


def pages(client: CoordinatorClient, path: str, **params: Any) -> Any:
    """Yield all items of a paginated list."""
    after = None
    while True:
        page = client.get(path, after=after, limit=1000, **params)
        yield from page["items"]
        after = page["next"]
        if after is None:
            return


def _post_command(name: str, verb: str, as_json: bool, url: str | None, token_file: Path | None) -> None:
    with open_client(find_connection(url, token_file)) as client:
        record = client.post(f"/runs/{parse_run_id(name)}/{verb}")
    print_json(record) if as_json else print_line(f"{name} is {record['state']}.")
