"""`zelda trace`: follow a segment or an epoch through rewards, reward models, votes and play."""

from dataclasses import asdict
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import print_json, print_line, print_status
from cli.errors import FAILED, USAGE, CliError
from cli.run_arguments import parse_run_id, parse_segment_id
from cli.runs.options import Json, Name
from cli.stored_runs import read_store
from shared.contracts.ids import RunId, SegmentId

if TYPE_CHECKING:
    from cli.trace.link import Link, State
    from shared.store.port import Store

app = typer.Typer(
    help="Follow a segment or an epoch through rewards, reward models, votes and play.",
    context_settings={"allow_interspersed_args": True},  # options may follow RUN
)
CHAIN = "cli.trace.chain"  # its imports take half a second
SHOWN_DIGITS = 16


@app.callback(invoke_without_command=True)
def trace(
    name: Name,
    segment: Annotated[str | None, typer.Argument(help="name of a segment", metavar="SEGMENT")] = None,
    epoch: Annotated[int | None, typer.Option("--epoch", min=0, help="follow this epoch's checkpoint instead")] = None,
    prompts: Annotated[bool, typer.Option("--prompts", help="print what each judge read")] = False,
    as_json: Json = False,
) -> None:
    """Show each object behind a segment: rewards that it changed, reward model, votes, recording, checkpoint.

    With --epoch: the epoch's checkpoint, its order, and the model and scores behind its rewards. Every digest is
    compared with what refers to it; the exit code is 1 if one differs. Objects that retention has removed are named.
    """
    run = parse_run_id(name)
    if epoch is not None and segment is None:
        wanted: int | SegmentId = epoch
    elif segment is not None and epoch is None:
        wanted = parse_segment_id(segment)
    else:
        choice = "Name a segment, or an epoch by --epoch" + (", not both" if segment is not None else "")
        raise CliError(USAGE, f"{choice}: the page's Segments tab shows their names.")
    Thread(target=import_module, args=(CHAIN,), daemon=True).start()  # while the S3 server of an ended system starts
    links = read_store(lambda store: _follow(store, run, wanted), run)
    if as_json:
        print_json([asdict(link) for link in links])
    else:
        for link in links:
            _print(link, prompts)
        if removed := _in_state("removed", links):
            print_status(f"No longer in the store: {removed}.")
    if changed := _in_state("changed", links):
        raise CliError(FAILED, f"Changed, damaged or incomplete since it was recorded: {changed}.")


async def _follow(store: "Store", run: RunId, wanted: int | SegmentId) -> "list[Link]":
    """The chain of a segment, or of the epoch with this number."""
    from cli.trace.chain import trace_epoch, trace_segment

    return await (trace_epoch(store, run, wanted) if isinstance(wanted, int) else trace_segment(store, run, wanted))


def _print(link: "Link", prompts: bool) -> None:
    digest = f"  {link.digest[:SHOWN_DIGITS]}" if link.digest else ""
    print_line(f"{link.what}: {link.state}{digest}")
    text = link.text.splitlines() if prompts and link.text else []
    for line in [*([link.key] if link.key else []), *link.facts, *text]:
        print_line(f"    {line}")


def _in_state(state: "State", links: "list[Link]") -> str:
    """The objects in this state, for a sentence; empty without one."""
    return ", ".join(link.what for link in links if link.state == state)
