"""`zelda run delete`: removes a run with everything that it recorded and learned."""

from typing import Annotated, Final

import typer

from cli.client import find_connection, open_client
from cli.console import print_json, print_line, print_status
from cli.errors import USAGE, CliError
from cli.run_arguments import parse_run_id
from cli.runs.options import Json, Name, TokenFile, Url

PATIENCE_S: Final = 600.0  # a long run has hundreds of thousands of objects

Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask")]


def delete(name: Name, yes: Yes = False, as_json: Json = False, url: Url = None, token_file: TokenFile = None) -> None:
    """Delete a run that is not active: recordings, scores, exports, checkpoints, models, record and notes.

    The name stays taken, because late events may still name the run.
    """
    run = parse_run_id(name)
    with open_client(find_connection(url, token_file)) as client:
        if not yes:
            state = client.get(f"/runs/{run}")["record"]["state"]
            if not _confirmed(f"Delete the {state} run {run} with everything that it recorded and learned?"):
                raise CliError(USAGE, f"{run} was not deleted: confirm with `y`, or pass --yes.")
        deleted = client.delete(f"/runs/{run}", PATIENCE_S)
    if as_json:
        print_json(deleted)
        return
    print_line(f"{run} is deleted: {sum(deleted['objects'].values())} objects, {deleted['bytes'] / 1e6:.1f} MB.")
    for kind, number in deleted["objects"].items():
        print_status(f"  {kind}: {number}")


def _confirmed(question: str) -> bool:
    try:
        return typer.confirm(question, err=True)  # standard output is for data
    except typer.Abort as end:
        if isinstance(end.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from end
        return False  # no terminal
