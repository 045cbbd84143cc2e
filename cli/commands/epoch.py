"""`zelda epoch`: train a single epoch, without bus and judges, in a directory store.

It uses the coordinator's selection of a reward model and the trainer's driver. A second call with the same run name
trains the next epoch from the last checkpoint.
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
from cli.errors import CONFLICT, FAILED, USAGE, CliError
from cli.run_arguments import parse_fields, run_config
from cli.service_settings import STORE_URL, load_settings
from cli.stack.servers import base_environment
from cli.stack.signals import die_with_parent, run_cancellable
from cli.stack.user_settings import DRIVER_ROM, find_rom, require_rom
from services.coordinator.domain.lifecycle import ACTIVE
from services.coordinator.domain.reward_model_selection import select_reward_model
from services.coordinator.readmodels.run_views import RunViewReader
from shared.config.settings import StoreSettings
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.events import RunState
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.errors import Permanent
from shared.state.deleted_runs import RunDeleted
from shared.state.documents import read_document
from shared.state.runs import RunRecords
from shared.state.saved_states import SavedStates, require_playable
from shared.store import keys
from shared.store.open import open_store
from shared.store.port import NotFound, Store
from shared.store.provision import ProvisionSettings as StoreOnly

app = typer.Typer(help="Train one epoch without bus and judges. `zelda judge` can judge its segments.")
POLL_S = 0.5
STORE = "ZELDA_STORE__"
PASSED_ON = ("ZELDA_DRIVER__", "ZELDA_LOG__")


@app.callback(invoke_without_command=True)
def epoch(
    name: Annotated[str, typer.Option("--run", help="name of the run; repeat it to train the next epoch")] = "single",
    set_: Annotated[
        list[str] | None, typer.Option("--set", "-s", help="a field of the run; epoch 0 chooses it, later ones keep it")
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="directory for segments and checkpoints; default: ZELDA_STORE__URL or runs/.single"),
    ] = None,
    rom: Annotated[Path | None, typer.Option(help="your own ROM image, for -s game=oracle-of-seasons")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the result of the epoch as JSON")] = False,
) -> None:
    """Train one epoch and print its result; `zelda judge` can judge its segments."""
    try:
        run = RunId(name)
    except ValueError as error:
        raise CliError(USAGE, f"--run {error}.") from error
    config = run_config(parse_fields(set_ or []))
    image = find_rom(os.environ, rom)
    require_rom(config.game, image)
    store_settings = _store_settings(store)
    environment = driver_environment(store_settings, image)
    result = run_cancellable(lambda: _train(run, config, set_ or [], store_settings, environment))
    if as_json:
        print_json(result.model_dump(mode="json"))
        return
    print_line(
        f"{name}, epoch {result.epoch}: {result.steps} steps, {result.episodes} episodes, {result.seconds:.0f} s"
    )
    print_line(f"segments: {len(result.segments)} recorded, {result.segments_dropped} dropped")
    for metric in ("return_mean", "milestones_mean", "milestones_max"):
        print_line(f"{metric}: {format_number(result.metrics.get(metric))}")
    print_line(f"checkpoint: {result.checkpoint_key}")


def _store_settings(directory: Path | None) -> StoreSettings:
    """Return the store: a directory, created if missing, or the store that the environment names."""
    if directory is None and STORE_URL in os.environ:
        return load_settings(StoreOnly, new_store=True).store
    directory = (directory or Path("runs/.single")).absolute()
    for bucket in keys.BUCKETS:
        (directory / bucket).mkdir(parents=True, exist_ok=True)
    return StoreSettings(url=f"file://{directory}")


def driver_environment(store_settings: StoreSettings, rom: Path | None) -> dict[str, str]:
    """Build the driver's environment: its own variables, plus those of the store if it is the configured one."""
    passed_on = (*PASSED_ON, STORE) if os.environ.get(STORE_URL) == store_settings.url else PASSED_ON
    given = {name: value for name, value in os.environ.items() if name.startswith(passed_on)}
    own = {DRIVER_ROM: str(rom)} if rom is not None else {}
    return {**base_environment(), "ZELDA_LOG__FORMAT": "console", **given, STORE_URL: store_settings.url, **own}


async def _train(
    run: RunId, config: RunConfig, pairs: list[str], store_settings: StoreSettings, environment: Mapping[str, str]
) -> EpochFinishedRecord:
    store = open_store(store_settings)
    runs = RunRecords(store)
    await _require_kept_fields(runs, run, pairs)
    await _require_starts(store, config)
    record = await _start_or_resume(runs, run, config)
    number_ = await _request_epoch(store, record)
    driver = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.trainer.driver"),
        *("--run", run, "--name", f"single-{secrets.token_hex(4)}", "--parent", str(os.getpid())),
        env=environment,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
    result = await _wait_for_epoch(store, run, number_, driver)
    await runs.append(_next_revision(await runs.latest(run), "stopped", "A single epoch was requested."))
    await driver.wait()  # it exits when it reads the stopped record
    return result


async def _require_kept_fields(runs: RunRecords, run: RunId, pairs: list[str]) -> None:
    """CliError if the run began with another value of one of these `FIELD=VALUE`, which would be ignored."""
    try:
        kept = (await runs.latest(run)).config
    except NotFound:
        return
    began = kept.model_dump(mode="json")
    other = [pair for pair in pairs if run_config(parse_fields([pair], base=began)) != kept]
    if other:
        raise CliError(
            CONFLICT,
            f"--set {', '.join(other)}: {run} began with another value, and a run keeps its settings. "
            "Leave it out, or choose another name with --run.",
        )


async def _require_starts(store: Store, config: RunConfig) -> None:
    """CliError, before anything is written, if the run cannot begin at one of its saved states."""
    try:
        require_playable(await SavedStates(store).named(config.starts), config)
    except Permanent as error:
        raise CliError(USAGE, f"--set starts: {error}.") from error


async def _start_or_resume(runs: RunRecords, run: RunId, config: RunConfig) -> RunRecord:
    """Create the run, or begin its next attempt with its original configuration; return the running record."""
    try:
        latest = await runs.latest(run)
    except NotFound:
        now = datetime.now(UTC)
        record = RunRecord(run=run, revision=0, state="running", config=config, created=now, updated=now, external=True)
        try:
            await runs.create(record)
        except RunDeleted as error:
            raise CliError(CONFLICT, str(error)) from error
        return record
    # An ended run may go on here; the mark keeps its coordinator away from then on.
    if not latest.external and latest.state in ACTIVE:
        reason = f"{run} is {latest.state}, and a coordinator trains it"
        raise CliError(CONFLICT, f"{reason}: stop it with `zelda run stop {run}`, or choose another name with --run.")
    record = _next_revision(latest, "running", None)
    await runs.append(record)
    return record


def _next_revision(record: RunRecord, state: RunState, reason: str | None) -> RunRecord:
    now = datetime.now(UTC)
    changes = {"revision": record.revision + 1, "state": state, "reason": reason, "updated": now, "external": True}
    attempt = record.attempt + (state == "running")
    return record.model_copy(update={**changes, "attempt": attempt})


async def _request_epoch(store: Store, record: RunRecord) -> int:
    """Request the next epoch unless an unfinished one exists; return its number."""
    view = await RunViewReader(store).read(record)
    epochs = view.epochs
    if epochs and epochs[-1].finished is None:
        return epochs[-1].epoch
    model = select_reward_model(epochs, record.config)
    start = EpochStart(
        run=record.run,
        epoch=len(epochs),
        fence=0,
        config=record.config,
        reward_model=model,
        archive=view.archive_before(len(epochs)),
        demonstrations=view.demonstrations_before(len(epochs)),
        starts=await SavedStates(store).named(record.config.starts),
        created=datetime.now(UTC),
    )
    await store.create(keys.epoch_start(record.run, start.epoch), start.to_bytes())
    print_status(
        f"Training epoch {start.epoch} of {record.run}, "
        f"shaped by {f'the reward model of epoch {model.epoch}' if model else 'no reward model'}."
    )
    return start.epoch


async def _wait_for_epoch(
    store: Store, run: RunId, epoch_: int, driver: asyncio.subprocess.Process
) -> EpochFinishedRecord:
    """Wait for the end of the epoch and return its record; CliError if the driver exits before."""
    while not await store.exists(keys.epoch_finished(run, epoch_)):
        if driver.returncode is not None:
            raise CliError(
                FAILED,
                f"The driver exited with code {driver.returncode} before the end of the epoch; its log is above.",
            )
        await asyncio.sleep(POLL_S)
    return await read_document(store, EpochFinishedRecord, keys.epoch_finished(run, epoch_))
