"""Reads runs from the store, with the coordinator's own read models, while no system runs."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from cli.client import find_connection, named_url
from cli.console import print_status
from cli.errors import NOT_FOUND, UNREACHABLE, CliError
from cli.service_settings import load_settings, reachable_store
from cli.unknown_run import require_run
from shared.contracts.ids import RunId
from shared.store.open import open_store
from shared.store.port import NotFound, Store
from shared.store.provision import ProvisionSettings

T = TypeVar("T")


def no_system_answers(url: str | None) -> bool:
    """Whether no system runs in this directory, and the user names no other one."""
    if url is not None or named_url():
        return False
    try:
        find_connection()
    except CliError as error:
        if error.code != UNREACHABLE:
            raise
        return True
    return False


def read_store(work: Callable[[Store], Coroutine[Any, Any, T]], run: RunId | None = None) -> T:
    """The result of `work` on the store of the running system, or of the one that ran here last.

    CliError if there is no such `run`.
    """

    async def checked(store: Store) -> T:
        if run is not None:
            await require_run(store, run)
        return await work(store)

    with reachable_store():
        store = open_store(load_settings(ProvisionSettings).store)
        try:
            return asyncio.run(checked(store))
        except NotFound as error:
            raise CliError(NOT_FOUND, f"{str(error).rstrip('.')}.") from error


def list_stored_runs(state: str | None, tag: str | None = None) -> tuple[list[dict[str, Any]], list[str]]:
    """All runs, newest first, as `GET /runs` returns them; and the names of those that cannot be read."""
    from services.coordinator.api.models import run_list_item
    from services.coordinator.readmodels.run_notes import RunNotesReader
    from shared.state.runs import RunRecords

    async def work(store: Store) -> tuple[list[dict[str, Any]], list[str]]:
        runs = RunRecords(store)
        records = [record for record in await runs.all() if state in (None, record.state)]
        records.sort(key=lambda record: record.created, reverse=True)
        tags = await RunNotesReader(store).tags()
        items = [run_list_item(record, tags.get(record.run, ())) for record in records]
        listed = [item.model_dump(mode="json") for item in items if tag is None or tag in item.tags]
        return listed, runs.unreadable

    return _announced(work)


def read_stored_run(run: RunId) -> dict[str, Any]:
    """A run as `GET /runs/{run}` returns it, with its `epochs` and `notes`."""
    from services.coordinator.readmodels.read_models import ReadModels

    async def work(store: Store) -> dict[str, Any]:
        models = ReadModels(store, lambda: datetime.now(UTC))
        record = await models.runs.latest(run)
        rows = await models.rows.finished(await models.views.read(record))
        return {
            "record": record.model_dump(mode="json"),
            "progress": None,  # it describes a system that runs
            "epochs": [row.model_dump(mode="json") for row in rows],
            "notes": (await models.notes.read(run)).model_dump(mode="json"),
        }

    return _announced(work, run)


def _announced(work: Callable[[Store], Coroutine[Any, Any, T]], run: RunId | None = None) -> T:
    found = read_store(work, run)
    print_status("No system runs: this is what its store holds.")
    return found
