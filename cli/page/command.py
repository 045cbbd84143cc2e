"""`zelda open`: opens the live page of the running system; prints its address for a machine without a browser."""

import os
from typing import Annotated, Final
from urllib.parse import quote

import typer

from cli.client import LOCAL_CONNECTION, find_connection, open_client, read_token
from cli.console import print_line, print_status
from cli.page.browser import open_in_browser
from cli.run_arguments import parse_run_id
from cli.runs.options import TokenFile, Url, run_names

app = typer.Typer(help="Open the live page of the running system in a browser.")
REDIRECT: Final = LOCAL_CONNECTION.parent / "secrets" / "page.html"


@app.callback(invoke_without_command=True)
def open_page(
    run: Annotated[
        str | None, typer.Option("--run", help="the run to show", metavar="RUN", autocompletion=run_names)
    ] = None,
    show: Annotated[bool, typer.Option("--print", help="only print the address, which contains a token")] = False,
    url: Url = None,
    token_file: TokenFile = None,
) -> None:
    """Open the live page in a browser, with the token of the running system; without a browser, print its address."""
    connection = find_connection(url, token_file)
    with open_client(connection) as client:
        client.get("/session")  # an address that no system answers, or a wrong token, must not open an error page
    selected = "" if run is None else f"?run={quote(parse_run_id(run))}"
    address = f"{connection.url.rstrip('/')}/{selected}#token={read_token(connection.token_file)}"
    if show or not open_in_browser(address, REDIRECT, os.environ):
        print_line(address)
        return
    print_status(f"The live page opens in your browser:  {connection.url}/{selected}")
