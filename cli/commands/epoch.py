"""`zelda epoch`: one single training epoch, without bus and judges, in a directory store.

The coordinator's own code gives the order and the trainer's own driver carries it out; called again with the same name
it plays the next epoch from the last checkpoint.
"""

import asyncio
import os
import secrets
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cli.console import format_number, print_json, print_line, print_status
from cli.errors import FAILED, USAGE, CliError
from cli.run_arguments import parse_fields, run_config
from cli.service_settings import load_settings
from cli.stack.servers import base_environment
from cli.stack.signals import die_with_parent, run_cancellable
from cli.stack.user_settings import DRIVER_ROM, find_rom, require_rom
from services.coordinator.domain.reward_model_selection import select_reward_model
from services.coordinator.readmodels.run_views import RunViewReader
from shared.config.settings import StoreSettings
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.events import RunState
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.open import open_store
from shared.store.port import NotFound, Store
from shared.store.provision import ProvisionSettings as StoreOnly

app = typer.Typer(help="Train one single epoch, without judges.")
POLL_S = 0.5
URL = "ZELDA_STORE__URL"
STORE = "ZELDA_STORE__"
PASSED_ON = ("ZELDA_DRIVER__", "ZELDA_LOG__")


@app.callback(invoke_without_command=True)
def epoch(
    name: Annotated[str, typer.Option("--run", help="the same name again plays the next epoch")] = "single",
    set_: Annotated[list[str] | None, typer.Option("--set", "-s", help="a field of the run, for epoch 0")] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="directory for segments and checkpoints; default ZELDA_STORE__URL, else runs/.single"),
    ] = None,
    rom: Annotated[Path | None, typer.Option(help="your own ROM image, for -s game=oracle-of-seasons")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the account of the epoch as JSON")] = False,
) -> None:
    """Train one epoch and print its account; zelda judge can judge its segments."""
    try:
        run = RunId(name)
    except ValueError as error:
        raise CliError(USAGE, f"--run {error}.") from error
    config = run_config(parse_fields(set_ or []))
    image = find_rom(os.environ, rom)
    require_rom(config.game, image)
    place = _place(store)
    account = run_cancellable(lambda: _play(run, config, place, environment(place, image)))
    if as_json:
        print_json(account.model_dump(mode="json"))
        return
    print_line(
        f"{name}, epoch {account.epoch}: {account.steps} steps, {account.episodes} episodes, {account.seconds:.0f} s"
    )
    print_line(f"segments: {len(account.segments)} recorded, {account.segments_dropped} dropped")
    for metric in ("return_mean", "milestones_mean", "milestones_max"):
        print_line(f"{metric}: {format_number(account.metrics.get(metric))}")
    print_line(f"checkpoint: {account.checkpoint_key}")


def _place(directory: Path | None) -> StoreSettings:
    """The store to work in: a directory, made if missing, or the one that the environment names."""
    if directory is None and URL in os.environ:
        return load_settings(StoreOnly).store
    directory = (directory or Path("runs/.single")).absolute()
    for bucket in keys.BUCKETS:
        (directory / bucket).mkdir(parents=True, exist_ok=True)
    return StoreSettings(url=f"file://{directory}")


def environment(place: StoreSettings, rom: Path | None) -> dict[str, str]:
    """What the driver is told: what the environment says of drivers, and of the store if it is the one meant there."""
    passed_on = (*PASSED_ON, STORE) if os.environ.get(URL) == place.url else PASSED_ON
    told = {name: value for name, value in os.environ.items() if name.startswith(passed_on)}
    own = {DRIVER_ROM: str(rom)} if rom is not None else {}
    return {**base_environment(), "ZELDA_LOG__FORMAT": "console", **told, URL: place.url, **own}


async def _play(run: RunId, config: RunConfig, place: StoreSettings, told: Mapping[str, str]) -> EpochFinishedRecord:
    store = open_store(place)
    runs = RunRecords(store)
    record = await _going_on(runs, run, config)
    number_ = await _order(store, record)
    driver = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.trainer.driver"),
        *("--run", run, "--name", f"single-{secrets.token_hex(4)}", "--parent", str(os.getpid())),
        env=told,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
    account = await _account(store, run, number_, driver)
    await runs.append(_next(await runs.latest(run), "stopped", "One single epoch was asked for."))
    await driver.wait()  # it leaves when it sees the record
    return account


async def _going_on(runs: RunRecords, run: RunId, config: RunConfig) -> RunRecord:
    """The run's record, in state running: a new run, or the next attempt of an old one with its own configuration."""
    try:
        record = _next(await runs.latest(run), "running", None)
    except NotFound:
        now = datetime.now(UTC)
        record = RunRecord(run=run, revision=0, state="running", config=config, created=now, updated=now)
        await runs.create(record)
        return record
    await runs.append(record)
    return record


def _next(record: RunRecord, state: RunState, reason: str | None) -> RunRecord:
    changes = {"revision": record.revision + 1, "state": state, "reason": reason, "updated": datetime.now(UTC)}
    attempt = record.attempt + (state == "running")
    return record.model_copy(update={**changes, "attempt": attempt})


async def _order(store: Store, record: RunRecord) -> int:
    """Give the order for the next epoch, unless one was given and not finished; the epoch's number."""
    epochs = (await RunViewReader(store).read(record)).epochs
    if epochs and epochs[-1].finished is None:
        return epochs[-1].epoch
    model = select_reward_model(epochs, record.config)
    order = EpochStart(
        run=record.run,
        epoch=len(epochs),
        fence=0,
        config=record.config,
        reward_model=model,
        created=datetime.now(UTC),
    )
    await store.create(keys.epoch_start(record.run, order.epoch), order.to_bytes())
    print_status(
        f"Epoch {order.epoch} of {record.run}, shaped by {f'the model of epoch {model.epoch}' if model else 'none'}."
    )
    return order.epoch


async def _account(store: Store, run: RunId, epoch_: int, driver: asyncio.subprocess.Process) -> EpochFinishedRecord:
    """Wait for the account of the epoch; a driver that ends before it is told."""
    while not await store.exists(keys.epoch_finished(run, epoch_)):
        if driver.returncode is not None:
            raise CliError(
                FAILED, f"The driver ended with code {driver.returncode} before its epoch; its log is above."
            )
        await asyncio.sleep(POLL_S)
    return EpochFinishedRecord.from_bytes(await store.get(keys.epoch_finished(run, epoch_)))
