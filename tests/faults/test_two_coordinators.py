"""Two coordinators: when the leader freezes, the other takes over; when it wakes, it changes nothing."""

import os
import signal
from pathlib import Path

import pytest

from shared.contracts.epoch import EpochStart
from shared.store import keys
from tests.faults.live_system import RUN, live_system

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


async def test_a_frozen_leader_is_replaced_and_harmless_when_it_wakes(tmp_path: Path) -> None:
    async with live_system(tmp_path) as live:
        other = live.second_coordinator()
        await other.start()
        try:
            await live.start_run(epochs=2)
            await live.wait_until(lambda: live.has_segments(0))
            leader = live.process("coordinator").process
            assert leader is not None
            os.kill(leader.pid, signal.SIGSTOP)
            await live.wait_until(lambda: live.store.exists(keys.epoch_start(RUN, 1)))
            os.kill(leader.pid, signal.SIGCONT)
            assert await live.wait_for_end() == "finished"
        finally:
            await other.stop()
        orders = [EpochStart.from_bytes(await live.store.get(keys.epoch_start(RUN, epoch))) for epoch in (0, 1)]
        assert orders[0].fence < orders[1].fence
        assert (await live.audit()).violations() == []
