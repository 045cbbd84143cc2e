"""`zelda demo`: start a whole system, play one short run, write its report, stop everything.

The exit code is 0 only if the run finished, every recorded segment has an outcome, and the report is written.
"""

import asyncio
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cli.client import open_client
from cli.console import print_epochs, print_line, print_status
from cli.errors import FAILED, CliError
from cli.llm.model_file import find_model
from cli.run_arguments import parse_fields, run_config
from cli.stack.local_stack import LocalStack, StackOptions, run_stack
from cli.stack.process import StackError
from cli.stack.signals import run_cancellable
from cli.stack.user_settings import find_rom, ignored_variables, require_rom, user_settings

app = typer.Typer(help="Start a system, play a short run, write its report, and stop the system.")

# Sized for two cores: exploration finds a way through the garden, and within three minutes the agent learns to walk it.
# Its segments suffice to evaluate a reward model on. Only new places pay, as in the studies: what else matters, judges
# have to teach. A step of 4 frames is a quarter of a tile, as the options of exploration need it.
CONFIG: Final[dict[str, Any]] = {
    "game": "bramble",
    "world": "garden",
    "epochs": 5,
    "epoch_steps": 20_480,
    "rewards": "explore",
    "episode_length": 1_200,
    "segment_steps": 300,
    "frame_skip": 4,
    "batch_size": 2_048,
    "env_runners": 0,
    "envs_per_runner": 16,
    "eval_interval": 1,
    "seed": 1,
    "sampling": {"budget": 60},
    "observation": "obs/v4",  # with achievements as flags it learns the way in fewer epochs
    "restarts": {"explore": 30_000, "share": 0.9, "mode": "backward"},
    "imitation": {"mode": "sil", "source": "archive", "coefficient": 1.0},
    "ppo": {"curiosity": 0.2},  # exploration has seen the garden: more would lead the policy off its way
}
# Sized for a model of 1.5 B parameters on two cores, which takes about half a minute for a segment.
LLM_CONFIG: Final[dict[str, Any]] = {
    "epochs": 3,
    "epoch_steps": 8_192,
    "sampling": {"budget": 10},
    "judge_deadline_s": 1_500,
}
# Segments that are judged again or compared are requests as well.
LLM_CHECKS: Final = {"ZELDA_JUDGE__CANARY_SEGMENTS": "2", "ZELDA_JUDGE__AUDIT_SHARE": "0"}
# The report shows a video of the best segment only: no other exports, and no PNG frames.
EXPORTS: Final = {"ZELDA_EXPORT__POLICY": "top", "ZELDA_EXPORT__TOP_K": "1", "ZELDA_EXPORT__FRAMES": "false"}


@app.callback(invoke_without_command=True)
def demo(
    set_: Annotated[list[str] | None, typer.Option("--set", "-s", help="a field of the run, e.g. -s epochs=5")] = None,
    out: Annotated[Path, typer.Option(help="directory that receives the folder of the run")] = Path("runs"),
    seed: Annotated[int, typer.Option(min=0, help="seed of the run: policy, games and sampling")] = CONFIG["seed"],
    store: Annotated[Path | None, typer.Option(help="store objects in this directory instead of an S3 server")] = None,
    rom: Annotated[Path | None, typer.Option(help="your own ROM image, for -s game=oracle-of-seasons")] = None,
    judges: Annotated[Path | None, typer.Option(help="YAML file with your own routes and judges")] = None,
    llm: Annotated[Path | None, typer.Option(help="GGUF file of a language model that judges on this machine")] = None,
) -> None:
    """Start a system, play five epochs with judges, print a table, write the report, stop the system.

    With --llm the run is shorter: a language model takes up to a minute for a segment on two cores.
    """
    began = time.monotonic()
    config = parse_fields(set_ or [], base={**CONFIG, **(LLM_CONFIG if llm else {}), "seed": seed})
    run_config(config)
    name = time.strftime("demo-%Y%m%d-%H%M%S", time.gmtime())
    extra = user_settings(os.environ, rom, judges, llm=llm is not None)
    model = None if llm is None else find_model(llm)
    require_rom(config.get("game"), find_rom(os.environ, rom))
    extra["exporter"] |= EXPORTS
    if model is not None:
        extra["judge"] = {**LLM_CHECKS, **extra["judge"]}
    if notice := ignored_variables(os.environ):
        print_status(notice)
    options = StackOptions(root=out / ".local", store=store, extra=extra, llm=model)
    try:
        state = run_cancellable(lambda: _run_demo(options, name, config, out / name))
    except StackError as error:
        raise CliError(FAILED, str(error)) from error
    print_status(f"Total time: {time.monotonic() - began:.0f} s.")
    if state != "finished":
        raise CliError(FAILED, f"The run did not finish: it is {state}. Read the logs in {options.root / 'logs'}.")


async def _run_demo(options: StackOptions, name: str, config: dict[str, Any], directory: Path) -> str:
    judge = "rules judge" if options.llm is None else "language model"
    print_status(f"Starting bus, store, {judge} and five services ...")
    async with run_stack(options, print_status) as system:
        print_status(
            f"Live page:  {system.url}/?run={name}#token={system.layout.secret('operator').read_text('utf-8')}"
        )
        stop = threading.Event()
        watching = asyncio.create_task(asyncio.to_thread(_watch, system, name, config, stop))
        try:
            await asyncio.wait({watching, system.supervisor}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await asyncio.to_thread(_stop_run, system, name)
            raise
        finally:
            stop.set()
        if system.supervisor.done():
            system.supervisor.result()
        state = await watching
        await _report(system, name, state, directory)
    return state


def _watch(system: LocalStack, name: str, config: dict[str, Any], stop: threading.Event) -> str:
    """Start the run, show it until it ends, and return its final state."""
    from cli.watch import watch_run

    with open_client(system.connection) as client:
        client.post("/runs", {"run": name, "config": config})
        return watch_run(client, name, as_json=False, stop=stop)


def _stop_run(system: LocalStack, name: str) -> None:
    """Stop the run: the next system in this directory would go on with it, beside its own."""
    with suppress(CliError), open_client(system.connection) as client:  # it has not begun, or no coordinator answers
        client.post(f"/runs/{name}/stop")


async def _report(system: LocalStack, name: str, state: str, directory: Path) -> None:
    from cli.runs.report_files import write_report
    from cli.service_settings import log_to_stderr
    from cli.stack.connections import local_store
    from services.coordinator.report.data import collect_report_data
    from shared.contracts.ids import RunId

    log_to_stderr()
    data = await collect_report_data(local_store(system.settings), RunId(name), state)
    await asyncio.to_thread(write_report, data, directory)
    print_epochs(f"Epochs of {name}", [row.model_dump() for row in data.rows])
    waiting = sum(row.segments_waiting for row in data.rows)
    if waiting:
        raise CliError(FAILED, f"{waiting} recorded segments were never judged: see {directory / 'summary.json'}.")
    print_line(f"Report: {directory / 'report.html'}")
