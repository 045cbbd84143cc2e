"""`run stop` ends within a minute with a checkpoint; `run resume` continues from it and repeats no finished work."""

import time
from pathlib import Path

import pytest

from shared.contracts.driver import DriverStopped
from shared.store import keys
from tests.faults.live_system import RUN, live_system

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


async def test_a_run_stops_in_mid_epoch_and_resumes(tmp_path: Path) -> None:
    async with live_system(tmp_path) as ring:
        # Harmless enemies: all episodes end together, and every batch has the same number of steps.
        await ring.start_run(epochs=1, epoch_steps=9_000, difficulty="harmless")
        await ring.wait_until(lambda: ring.has_segments(0))
        before = {entry.key: entry.modified for entry in await ring.store.list(keys.segments_prefix(RUN))}
        asked = time.monotonic()
        await ring.request("POST", f"/runs/{RUN}/stop")
        assert await ring.wait_for_end(60) == "stopped"
        assert time.monotonic() - asked < 60
        stopped = DriverStopped.from_bytes(await ring.store.get(keys.driver_stopped(RUN, 1)))
        assert 0 < stopped.steps < 9_000
        assert stopped.checkpoint_key is not None
        await ring.store.get(stopped.checkpoint_key, stopped.checkpoint_digest)
        await ring.request("POST", f"/runs/{RUN}/resume")
        assert await ring.wait_for_end() == "finished"
        after = {entry.key: entry.modified for entry in await ring.store.list(keys.segments_prefix(RUN))}
        assert before.items() <= after.items()
        found = await ring.audit()
        assert found.violations() == []
        rows = await ring.request("GET", f"/runs/{RUN}/epochs")
        assert [row["steps"] for row in rows] == [9_000]
