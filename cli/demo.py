"""`zelda demo`: a whole system, one short run from start to report, and nothing left running.

It ends with 0 only if the run finished, every recorded segment has an outcome, and the report is written.
"""

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cli.client import open_client
from cli.console import epochs_table, line, say
from cli.exits import FAILED, Quit
from cli.run import configured, fields
from cli.stack.bonds import run_to_the_end
from cli.stack.brought import brought, left_out, must_have_rom, rom_of
from cli.stack.process import StackError
from cli.stack.system import Options, System, running

app = typer.Typer(help="Play a short run from start to report, and leave nothing running.")

# Sizes for two cores: three epochs in a few minutes, and enough judged episodes for a held-out reward model.
CONFIG: Final[dict[str, Any]] = {
    "game": "bramble",
    "world": "garden",
    "epochs": 3,
    "epoch_steps": 20_000,
    "episode_length": 1_000,
    "batch_size": 2_000,
    "env_runners": 0,
    "envs_per_runner": 8,
    "eval_interval": 1,
    "seed": 1,
    "sampling": {"budget": 100},
}
# A video of each epoch's best segment is what the report shows; single pictures of every step are not.
EXPORTS: Final = {"ZELDA_EXPORT__POLICY": "top", "ZELDA_EXPORT__TOP_K": "1", "ZELDA_EXPORT__FRAMES": "false"}


@app.callback(invoke_without_command=True)
def demo(
    set_: Annotated[list[str] | None, typer.Option("--set", "-s", help="a field of the run, e.g. -s epochs=5")] = None,
    out: Annotated[Path, typer.Option(help="where runs/<id>/ is written")] = Path("runs"),
    store: Annotated[Path | None, typer.Option(help="keep objects in this directory, not in an S3 server")] = None,
    rom: Annotated[Path | None, typer.Option(help="your own ROM image, for -s game=oracle-of-seasons")] = None,
    judges: Annotated[Path | None, typer.Option(help="YAML with your own routes and judges")] = None,
) -> None:
    """Start everything, play, judge, learn, print the table, write the report, end everything."""
    began = time.monotonic()
    config = fields(set_ or [], base=CONFIG)
    configured(config)
    name = time.strftime("demo-%Y%m%d-%H%M%S", time.gmtime())
    extra = brought(os.environ, rom, judges)
    must_have_rom(config.get("game"), rom_of(os.environ, rom))
    extra["exporter"] |= EXPORTS
    if sentence := left_out(os.environ):
        say(sentence)
    options = Options(root=out / ".local", store=store, extra=extra)
    try:
        state = run_to_the_end(lambda: _play(options, name, config, out / name))
    except StackError as error:
        raise Quit(FAILED, str(error)) from error
    say(f"{time.monotonic() - began:.0f} s in all.")
    if state != "finished":
        raise Quit(FAILED, f"The run is {state}, not finished; logs: {options.root / 'logs'}.")


async def _play(options: Options, name: str, config: dict[str, Any], directory: Path) -> str:
    say("Starting bus, store, rules judge and five services ...")
    async with running(options, say) as system:
        say(f"Watch it live:  {system.url}/?run={name}#token={system.layout.secret('operator').read_text('utf-8')}")
        leave = threading.Event()
        watching = asyncio.create_task(asyncio.to_thread(_watch, system, name, config, leave))
        try:
            await asyncio.wait({watching, system.keeper}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leave.set()
        if system.keeper.done():
            system.keeper.result()
        state = await watching
        await _report(system, name, state, directory)
    return state


def _watch(system: System, name: str, config: dict[str, Any], leave: threading.Event) -> str:
    """Start the run and show it until it ends; its last state."""
    from cli.watch import watch_run

    with open_client(system.connection) as client:
        client.post("/runs", {"run": name, "config": config})
        return watch_run(client, name, as_json=False, leave=leave)


async def _report(system: System, name: str, state: str, directory: Path) -> None:
    from cli.direct import log_beside_the_data
    from cli.report.material import gather
    from cli.report.write import write_report
    from cli.stack.reach import store_of
    from shared.contracts.ids import RunId

    log_beside_the_data()
    material = await gather(store_of(system.settings), RunId(name), state)
    await asyncio.to_thread(write_report, material, directory)
    epochs_table(f"Epochs of {name}", [row.model_dump() for row in material.rows])
    waiting = sum(row.segments_waiting for row in material.rows)
    if waiting:
        raise Quit(FAILED, f"{waiting} recorded segments have no outcome; see {directory / 'summary.json'}.")
    line(f"Report: {directory / 'report.html'}")
