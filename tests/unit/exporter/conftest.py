"""Fixtures of the exporter's tests: a store with recorded play."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shared.contracts.epoch import EpochStart
from shared.store import keys
from shared.store.object_store import local_store
from shared.store.port import Store
from tests.unit.exporter.recorded_play import CONFIG, RUN, record


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a started epoch and two recorded segments."""
    directory = tmp_path_factory.mktemp("store")
    record(directory)
    start = EpochStart(run=RUN, epoch=0, fence=1, config=CONFIG, created=datetime.now(UTC))
    asyncio.run(local_store(directory).create(keys.epoch_start(RUN, 0), start.to_bytes()))
    return directory


@pytest.fixture
def store(recorded: Path, tmp_path: Path) -> Store:
    """A fresh copy of that store."""

    async def copy() -> Store:
        source, target = local_store(recorded), local_store(tmp_path)
        for entry in [*await source.list("episodes/"), *await source.list("models/")]:
            await target.put(entry.key, await source.get(entry.key))
        return target

    return asyncio.run(copy())
