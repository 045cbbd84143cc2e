"""A running system heals itself: progress within a minute after the fault, without a person, and one line about it.

The faults strike one system in turn; its run is long enough for all of them.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import pytest_asyncio

from cli.errors import CliError
from tests.faults.live_system import START_S, LiveSystem, live_system
from tests.faults.small_disk import full, mountable, small_disk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="module")]

EPOCHS = 200  # more than all faults leave time for
PROGRESS_S = 60.0
FULL_S = 30.0  # longer than several writes of each service and of the guard


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveSystem]:
    """A system in the middle of a run, on a small disk where this user can mount one."""
    root = tmp_path_factory.mktemp("healing")
    with ExitStack() as stack:
        if mountable():
            stack.enter_context(small_disk(root))
        async with live_system(root) as live:
            await live.start_run(epochs=EPOCHS)
            yield live


@pytest_asyncio.fixture(loop_scope="module")
async def ring(system: LiveSystem) -> LiveSystem:
    """The system, playing: the driver that a fault before this one ended has recorded segments again."""
    await system.wait_for_segments(START_S)
    return system


def lines_about(ring: LiveSystem, text: str, since: int) -> list[str]:
    """What the system said with these words after so many messages."""
    return [line for line in ring.messages[since:] if text in line]


async def test_a_wiped_bus_gets_its_streams_again(ring: LiveSystem) -> None:
    said = len(ring.messages)
    shutil.rmtree(ring.system.layout.bus)
    ring.kill("bus")
    await ring.wait_until(lambda: said_something(ring, "The bus had lost streams", said), PROGRESS_S)
    assert await ring.wait_for_progress(PROGRESS_S) < PROGRESS_S
    assert len(lines_about(ring, "The bus had lost streams", said)) == 1


async def said_something(ring: LiveSystem, text: str, since: int) -> bool:
    """Whether the system has said these words."""
    return bool(lines_about(ring, text, since))


async def runs_on(ring: LiveSystem) -> bool:
    """Whether the run is running; False while the store just comes back."""
    try:
        return await ring.run_state() == "running"
    except CliError:
        return False


@pytest.mark.parametrize("server", ["store", "bus"])
async def test_a_server_that_hangs_is_restarted(ring: LiveSystem, server: str) -> None:
    said, process = len(ring.messages), ring.process(server).process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    await ring.wait_until(lambda: said_something(ring, f"{server} refuses to store", said), PROGRESS_S)
    assert await ring.wait_for_progress(PROGRESS_S) < PROGRESS_S
    (line,) = lines_about(ring, "refuses to store", said)
    assert "restarting it" in line


@pytest.mark.skipif(not mountable(), reason="a small disk for the test needs root, to mount it")
async def test_a_full_disk_stops_nothing_once_there_is_space_again(ring: LiveSystem) -> None:
    said = len(ring.messages)
    with full(ring.system.layout.root):
        await ring.wait_until(lambda: said_something(ring, "store cannot store: its disk has", said), PROGRESS_S)
        await asyncio.sleep(FULL_S)
    assert await ring.wait_for_progress(PROGRESS_S) < PROGRESS_S
    assert len(lines_about(ring, "store cannot store: its disk has", said)) == 1
    await ring.wait_until(lambda: runs_on(ring), 2 * PROGRESS_S)  # one request alone may be retried for a minute
    await ring.wait_for_epochs(2, START_S)  # also the bus lets every event through
