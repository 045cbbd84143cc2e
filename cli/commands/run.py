"""`zelda run`: start, stop, resume, list, show, watch and annotate runs, and read logs: a REST client."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cli.client import CoordinatorClient, find_connection, open_client
from cli.console import (
    done_epochs,
    print_epochs,
    print_json,
    print_line,
    print_status,
    print_table,
    run_status,
)
from cli.errors import FAILED, INTERRUPTED, OK, USAGE, CliError
from cli.new_run.estimate import estimate
from cli.new_run.runner_shape import with_runner_shape
from cli.run_arguments import load_config_file, parse_fields, parse_run_id
from cli.runs.deletion import delete
from cli.runs.next_commands import HERE, Reach, print_next
from cli.runs.notes import note, note_lines
from cli.runs.options import Json, Name, TokenFile, Url, pages
from shared.config.groups import GROUPS
from shared.contracts.events import RunState
from shared.process.cores import usable_cores

LOGGED: Final = (*GROUPS, "rules-judge", "llm", "bus", "store")
"""The processes of a local system that have a log file."""

app = typer.Typer(help="Start, watch, stop and resume runs.", no_args_is_help=True)


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
        body["run"] = parse_run_id(name)
    if key is not None and not (key.isascii() and key.isprintable()):
        raise CliError(USAGE, f"--idempotency-key {key}: use ASCII characters, as HTTP headers do.")
    connection = find_connection(url, token_file)
    if connection.pid:  # the system of this machine
        body["config"] = with_runner_shape(body["config"], usable_cores())
    with open_client(connection) as client:
        record = client.post("/runs", body, {"Idempotency-Key": key} if key else None)
        print_json(record) if as_json else print_line(record["run"])
        reach = Reach.of(url, token_file)
        print_status(estimate(client, record["run"], record["config"]))
        if watch:
            raise typer.Exit(watch_to_exit_code(client, record["run"], as_json, reach))
        print_status(f"The run starts. Live page:  {client.url}/?run={record['run']}")
        print_next(record["run"], record["state"], reach)


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
    state: Annotated[RunState | None, typer.Option(help="only runs in this state")] = None,
    tag: Annotated[str | None, typer.Option(help="only runs with this tag")] = None,
    as_json: Json = False,
    url: Url = None,
    token_file: TokenFile = None,
) -> None:
    """List all runs, newest first. The exit code is 1 if the store holds runs that cannot be read."""
    from cli.stored_runs import list_stored_runs, no_system_answers

    unreadable: list[str] = []  # a running system logs and counts them, and its API does not list them
    if no_system_answers(url):
        runs, unreadable = list_stored_runs(state, tag)
    else:
        with open_client(find_connection(url, token_file)) as client:
            runs = list(pages(client, "/runs", state=state, tag=tag))
    if as_json:
        print_json(runs)
    else:
        if not runs and not unreadable:
            print_status(
                "There are no runs yet: start one with `zelda run start`."
                if state is None and tag is None
                else "No run has this tag or state: list all runs with `zelda run list`."
            )
        _print_runs(runs)
    if unreadable:
        number = "1 run" if len(unreadable) == 1 else f"{len(unreadable)} runs"
        raise CliError(FAILED, f"{number} cannot be read, for the reasons logged above: {', '.join(unreadable)}.")


def _print_runs(runs: list[dict[str, Any]]) -> None:
    rows = [
        [
            *(run["run"], run["state"], run["world"]),
            done_epochs(run["epoch"], run["epochs_planned"], run["state"]),
            run["created"][:16].replace("T", " "),
            " ".join(run["tags"]),
        ]
        for run in runs
    ]
    print_table("Runs", ("run", "state", "world", "epochs done", "created", "tags"), rows)


@app.command()
def show(name: Name, as_json: Json = False, url: Url = None, token_file: TokenFile = None) -> None:
    """Show the state and the progress of a run, and one line per finished epoch."""
    from cli.stored_runs import no_system_answers, read_stored_run

    stored = no_system_answers(url)
    if stored:
        run = read_stored_run(parse_run_id(name))
    else:
        with open_client(find_connection(url, token_file)) as client:
            run = client.get(f"/runs/{parse_run_id(name)}") | {
                part: client.get(f"/runs/{name}/{part}") for part in ("epochs", "notes")
            }
    if as_json:
        print_json(run)
        return
    record = run["record"]
    print_line(run_status(name, record))
    for line in note_lines(run["notes"]):
        print_line(line)
    if record["state"] in ("created", "running", "stopping") and run["progress"]:
        from cli.watch import describe_progress

        print_line(describe_progress(run["progress"]))
    print_epochs(f"Epochs of {name}", run["epochs"])
    for line in reasons(run["epochs"]):
        print_line(line)
    print_next(name, record["state"], Reach.of(url, token_file, up=not stored), after="run show")


@app.command()
def watch(name: Name, as_json: Json = False, url: Url = None, token_file: TokenFile = None) -> None:
    """Show the progress of a run until it ends; prints plain lines without a terminal."""
    with open_client(find_connection(url, token_file)) as client:
        raise typer.Exit(watch_to_exit_code(client, parse_run_id(name), as_json, Reach.of(url, token_file)))


@app.command()
def diff(
    first: Name,
    second: Annotated[str, typer.Argument(help="the run to compare it with", metavar="OTHER")],
    other_store: Annotated[
        Path | None, typer.Option("--other-store", help="directory of the store that holds OTHER; default: the same")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two runs object by object and show where they diverge; the exit code is 1 if they do.

    Names, times and costs are left out. Runs with equal configuration and seed are equal, as long as the same segments
    were judged.
    """
    from cli.run_comparison import differences

    found = differences(parse_run_id(first), parse_run_id(second), other_store)
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        rows = [[str(one.epoch), one.kind, str(one.equal), str(len(one.differing)), one.examples] for one in found]
        print_table(f"{first} and {second}", ("epoch", "objects", "equal", "different", "first of them"), rows)
    diverged = next((one for one in found if one.differing), None)
    if diverged is not None:
        raise CliError(
            FAILED, f"The runs diverge in epoch {diverged.epoch}, first in: {diverged.kind} ({diverged.examples})."
        )
    print_status(f"The runs are equal in {sum(one.equal for one in found)} objects and figures.")


@app.command()
def logs(
    process: Annotated[str, typer.Argument(help=", ".join(LOGGED), metavar="PROCESS")],
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="number of lines")] = 50,
    run: Annotated[str | None, typer.Option("--run", help="leave out lines about other runs", metavar="RUN")] = None,
) -> None:
    """Print the last log lines of one process of the local system."""
    from services.coordinator.readmodels.service_logs import ServiceLogs

    path = Path("runs/.local/logs") / f"{Path(process).name}.log"
    if not path.exists():
        names = sorted(file.stem for file in path.parent.glob("*.log"))
        if names or path.stem not in LOGGED:
            advice = f"choose from {', '.join(names or LOGGED)}"
        else:
            advice = "start a system with `zelda up`, or read the log of the pod"
        raise CliError(USAGE, f"The log file {path} does not exist: {advice}.")
    for text in ServiceLogs(path.parent).tail(path.stem, lines, None if run is None else parse_run_id(run)):
        print_line(text)


app.command()(note)
app.command()(delete)


def watch_to_exit_code(client: CoordinatorClient, name: str, as_json: bool, reach: Reach = HERE) -> int:
    """Show a run until it ends; return 0 if it finished or was stopped, 130 after ctrl-C, else 1."""
    from cli.watch import watch_run

    try:
        state = watch_run(client, name, as_json)
    except KeyboardInterrupt:
        print_status(f"{name} continues.")
        print_next(name, "running", reach)
        return INTERRUPTED
    print_next(name, state, reach)
    return OK if state in ("finished", "stopped") else FAILED


def reasons(epochs: list[dict[str, Any]]) -> list[str]:
    """Why reward models were not used, and why epochs were not shaped: one line each."""
    lines = []
    for row in epochs:
        about = {"its reward model is ": row.get("reason"), "": row.get("not_shaped"), "alarm: ": row.get("alarm")}
        lines += [f"epoch {row['epoch']}: {prefix}{text}" for prefix, text in about.items() if text]
    return lines


def _post_command(name: str, verb: str, as_json: bool, url: str | None, token_file: Path | None) -> None:
    with open_client(find_connection(url, token_file)) as client:
        record = client.post(f"/runs/{parse_run_id(name)}/{verb}")
    print_json(record) if as_json else print_line(f"{name} is {record['state']}.")
