"""Arguments and options that the commands of `zelda run` share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.client import CoordinatorClient, find_connection, open_client
from cli.errors import CliError

Url = Annotated[str | None, typer.Option("--url", help="URL of the coordinator; default: the local system")]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="file with a token of that coordinator")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


def run_names(incomplete: str) -> list[str]:
    """The names of all runs that begin so, for the shell; none if no system answers."""
    try:
        with open_client(find_connection()) as client:
            return [run["run"] for run in pages(client, "/runs") if run["run"].startswith(incomplete)]
    except CliError:  # completion has nowhere to show an error
        return []


Name = Annotated[str, typer.Argument(help="name of the run", metavar="RUN", autocompletion=run_names)]


def pages(client: CoordinatorClient, path: str, **params: Any) -> Any:
    """Yield all items of a paginated list."""
    after = None
    while True:
        page = client.get(path, after=after, limit=1000, **params)
        yield from page["items"]
        after = page["next"]
        if after is None:
            return
