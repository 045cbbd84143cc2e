"""`zelda up`: run the whole system on this machine until ctrl-C, which drains and stops it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Annotated

import typer

from cli.console import print_line, print_status
from cli.errors import FAILED, USAGE, CliError
from cli.llm.model_file import find_model
from cli.stack.local_stack import LocalStack, StackOptions, run_stack
from cli.stack.ports import usual_port
from cli.stack.process import StackError
from cli.stack.services import SERVICES
from cli.stack.signals import run_cancellable
from cli.stack.user_settings import ignored_variables, user_settings

app = typer.Typer(help="Start bus, store, rules judge and the five services on this machine; ctrl-C stops them.")
ROOT = Path("runs/.local")


@app.callback(invoke_without_command=True)
def up(
    store: Annotated[Path | None, typer.Option(help="store objects in this directory instead of an S3 server")] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=1024, max=65_535, help="port of the API and the live page; default: one that belongs to --root"
        ),
    ] = None,
    root: Annotated[Path, typer.Option(help="directory for logs, secrets and server data")] = ROOT,
    rom: Annotated[Path | None, typer.Option(help="your own ROM image, for runs with game=oracle-of-seasons")] = None,
    judges: Annotated[Path | None, typer.Option(help="YAML file with your own routes and judges")] = None,
    llm: Annotated[Path | None, typer.Option(help="GGUF file of a language model that judges on this machine")] = None,
    planner: Annotated[Path | None, typer.Option(help="YAML file with the models of planner and guidance")] = None,
    without: Annotated[list[str] | None, typer.Option(help="do not start this service, e.g. exporter")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the addresses as JSON")] = False,
) -> None:
    """Start bus, store, rules judge and the five services; restart crashed ones; stop all of them on ctrl-C."""
    unknown = set(without or []) - set(SERVICES)
    if unknown:
        raise CliError(USAGE, f"--without {unknown.pop()}: choose from {', '.join(SERVICES)}.")
    services = [name for name in SERVICES if name not in (without or [])]
    extra = user_settings(os.environ, rom, judges, llm=llm is not None, planner=planner)
    model = None if llm is None else find_model(llm)
    options = StackOptions(
        root=root, store=store, api_port=port or usual_port(root), extra=extra, services=services, llm=model
    )
    if notice := ignored_variables(os.environ):
        print_status(notice)
    try:
        run_cancellable(lambda: _run_until_signal(options, as_json))
    except StackError as error:
        raise CliError(FAILED, str(error)) from error


async def _run_until_signal(options: StackOptions, as_json: bool) -> None:
    async with run_stack(options, print_status) as system:
        _announce(system, as_json)
        try:
            await system.supervisor
        except asyncio.CancelledError:
            print_status("Stopping; this takes a few seconds.")


def _announce(system: LocalStack, as_json: bool) -> None:
    token = system.layout.secret("operator").read_text(encoding="utf-8")
    if as_json:
        files = {"token_file": str(system.layout.secret("operator")), "logs": str(system.layout.logs)}
        print_line(json.dumps({"url": system.url, "settings": dict(system.settings), **files}))
        return
    print_status(f"The system is up. Live page:  {system.url}/#token={token}")
    print_status(
        f"Start a run from another terminal:  zelda run start --set world=garden --watch{connection_options(system)}"
    )
    print_status(f"Logs: {system.layout.logs}  -  ctrl-C stops everything.")


def connection_options(system: LocalStack) -> str:
    """Return the options that other commands need to find a system outside the default directory."""
    if system.layout.root == ROOT.absolute():
        return ""
    return f" --url {system.url} --token-file {system.layout.secret('operator')}"
