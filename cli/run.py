"""`zelda run`: start, stop, resume, list, show, watch runs and read their logs. A REST client; it decides nothing."""

import json
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.client import Client, connection, open_client
from cli.console import data, epoch_of, epochs_table, line, number, standing, table
from cli.exits import FAILED, OK, USAGE, Quit
from shared.config.groups import GROUPS
from shared.contracts.ids import RunId

if TYPE_CHECKING:
    from shared.contracts.run import RunConfig

app = typer.Typer(help="Start, watch and stop runs.", no_args_is_help=True)
Url = Annotated[str | None, typer.Option("--url", help="address of the coordinator; default: the local system")]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="file with a token of that coordinator")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="name of the run", metavar="RUN")]


@app.command()
def start(
    name: Annotated[
        str | None, typer.Argument(help="name of the run; one is made up if missing", metavar="RUN")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", "-s", help="a field, e.g. -s world=garden -s shaping.mode=none")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="JSON file with the configuration")] = None,
    key: Annotated[str | None, typer.Option("--idempotency-key", help="the same key never starts two runs")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="stay and show its progress")] = False,
    overlap: Annotated[bool, typer.Option("--overlap", help="never wait for judges between epochs")] = False,
    as_json: Json = False,
    url: Url = None,
    token_file: TokenFile = None,
) -> None:
    """Start a run. Every field has a default: see the API's /docs for all of them."""
    body: dict[str, Any] = {"config": fields(set_ or [], base=_file(config))}
    if overlap:
        body["config"]["overlap"] = True
    if name is not None:
        body["run"] = name
    with open_client(connection(url, token_file)) as client:
        record = client.post("/runs", body, {"Idempotency-Key": key} if key else None)
        data(record) if as_json else line(record["run"])
        if watch:
            raise typer.Exit(follow(client, record["run"], as_json))


@app.command()
def stop(name: Name, as_json: Json = False, url: Url = None, token_file: TokenFile = None) -> None:
    """Stop a run: it writes a checkpoint first and can go on later."""
    _command(name, "stop", as_json, url, token_file)


@app.command()
def resume(name: Name, as_json: Json = False, url: Url = None, token_file: TokenFile = None) -> None:
    """Let a stopped or failed run go on from its last checkpoint."""
    _command(name, "resume", as_json, url, token_file)


@app.command("list")
def list_runs(
    state: Annotated[str | None, typer.Option(help="only runs in this state")] = None,
    as_json: Json = False,
    url: Url = None,
    token_file: TokenFile = None,
) -> None:
    """All runs, newest first."""
    with open_client(connection(url, token_file)) as client:
        runs = list(pages(client, "/runs", state=state))
    if as_json:
        data(runs)
        return
    rows = [
        [run["run"], run["state"], run["world"], epoch_of(run["epoch"], run["epochs_planned"]), run["created"][:19]]
        for run in runs
    ]
    table("Runs", ("run", "state", "world", "epoch", "created"), rows)


@app.command()
def show(name: Name, as_json: Json = False, url: Url = None, token_file: TokenFile = None) -> None:
    """One run: its state, its progress, and a line for each finished epoch."""
    with open_client(connection(url, token_file)) as client:
        run, epochs = client.get(f"/runs/{run_id(name)}"), client.get(f"/runs/{name}/epochs")
    if as_json:
        data({**run, "epochs": epochs})
        return
    record, progress = run["record"], run["progress"] or {}
    line(standing(name, record))
    line(f"{progress.get('doing', '')} {number(progress.get('steps_per_s'), '{:.0f} steps/s')}".strip())
    epochs_table(f"Epochs of {name}", epochs)


@app.command()
def watch(name: Name, as_json: Json = False, url: Url = None, token_file: TokenFile = None) -> None:
    """Stay and show a run's progress until it ends; plain lines where there is no terminal."""
    with open_client(connection(url, token_file)) as client:
        raise typer.Exit(follow(client, run_id(name), as_json))


@app.command()
def logs(
    process: Annotated[str, typer.Argument(help=f"{', '.join(GROUPS)}, rules-judge, bus, store")],
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="how many of the last lines")] = 50,
) -> None:
    """The last log lines of one process of the local system."""
    path = Path("runs/.local/logs") / f"{Path(process).name}.log"
    if not path.exists():
        there = ", ".join(sorted(file.stem for file in path.parent.glob("*.log")))
        instead = f"there are those of {there}" if there else "start a system with `zelda up`, or look at the pod's log"
        raise Quit(USAGE, f"There is no log {path}: {instead}.")
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]:
        line(text)


def follow(client: Client, name: str, as_json: bool) -> int:
    """Show a run until it ends; the exit code says how it ended."""
    from cli.watch import watch_run

    return OK if watch_run(client, name, as_json) in ("finished", "stopped") else FAILED


def fields(pairs: list[str], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """`a.b=1` pairs as nested JSON on top of `base`; values that are not JSON are text."""
    made = deepcopy(base or {})
    for pair in pairs:
        path, separator, text = pair.partition("=")
        if not separator or not path:
            raise Quit(USAGE, f"--set {pair}: write FIELD=VALUE, e.g. --set epochs=5.")
        *parents, last = path.split(".")
        place = made
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise Quit(
                    USAGE, f"--set {pair}: {parent} is {json.dumps(place)} and has no fields: set one of the two."
                )
        place[last] = _value(text)
    return made


def configured(values: dict[str, Any]) -> "RunConfig":
    """The configuration of a run; Quit if it is none, before anything is started for it."""
    from pydantic import ValidationError

    from shared.contracts.base import first_problem
    from shared.contracts.run import RunConfig

    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        *parents, last = (str(part) for part in problem["loc"] or ("",))
        if problem["type"] != "extra_forbidden":
            raise Quit(USAGE, f"--set {first_problem(error)}.") from error
        place: Any = RunConfig
        for parent in parents:
            place = place.model_fields[parent].annotation
        known = ", ".join(place.model_fields)
        raise Quit(USAGE, f"--set {'.'.join((*parents, last))}: no such field; known are {known}.") from error


def run_id(name: str) -> RunId:
    """The name as an id; Quit if it is none: part of an address, `.` or nothing at all would ask for something else."""
    try:
        return RunId(name)
    except ValueError as error:
        raise Quit(USAGE, f"{error}.") from error


def pages(client: Client, path: str, **params: Any) -> Any:
    """All items of a list that comes in pages."""
    after = None
    while True:
        page = client.get(path, after=after, limit=1000, **params)
        yield from page["items"]
        after = page["next"]
        if after is None:
            return


def _command(name: str, verb: str, as_json: bool, url: str | None, token_file: Path | None) -> None:
    with open_client(connection(url, token_file)) as client:
        record = client.post(f"/runs/{run_id(name)}/{verb}")
    data(record) if as_json else line(f"{name} is {record['state']}.")


def _value(text: str) -> Any:
    try:
        return _json(text)
    except ValueError:
        return text


def _json(text: str) -> Any:
    """The JSON in a text; ValueError also for NaN and 1e999, which Python reads and no request can carry."""
    found = json.loads(text)
    json.dumps(found, allow_nan=False)
    return found


def _file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found = _json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Quit(USAGE, f"--config {path}: {error.strerror}: name a file with a run's settings.") from error
    except ValueError as error:  # neither JSON nor text
        raise Quit(USAGE, f"--config {path} is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise Quit(USAGE, f"--config {path}: it must hold a JSON object.")
    return found
