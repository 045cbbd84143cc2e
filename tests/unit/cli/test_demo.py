"""`zelda demo` leaves no run behind that the next system in its directory would go on with."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.commands import demo
from cli.stack.layout import Connection, StackLayout
from cli.stack.local_stack import StackOptions
from shared.contracts.ids import RunId
from shared.state.runs import RunRecords
from shared.store.port import NotFound
from tests.unit.cli.served_runs import served
from tests.unit.coordinator.harness import Harness

RUN = RunId("demo-1")


async def test_an_interrupted_demo_stops_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(Harness(), tmp_path, monkeypatch) as harness:
        connection = Connection(os.environ["ZELDACLI_URL"], Path(os.environ["ZELDACLI_TOKEN_FILE"]), 0, {})

        @asynccontextmanager
        async def system(*_: object) -> AsyncIterator[SimpleNamespace]:
            yield SimpleNamespace(
                url=connection.url,
                connection=connection,
                layout=StackLayout(tmp_path),
                supervisor=asyncio.get_running_loop().create_future(),
            )

        monkeypatch.setattr(demo, "run_stack", system)
        work = demo._run_demo(StackOptions(tmp_path), RUN, {"world": "garden"}, tmp_path / RUN)
        playing = asyncio.create_task(work)
        async with asyncio.timeout(30):
            while not await _exists(harness):  # noqa: ASYNC110 - a store has no event to offer
                await asyncio.sleep(0.05)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        assert (await RunRecords(harness.store).latest(RUN)).state in ("stopping", "stopped")


async def _exists(harness: Harness) -> bool:
    try:
        await RunRecords(harness.store).latest(RUN)
    except NotFound:
        return False
    return True
