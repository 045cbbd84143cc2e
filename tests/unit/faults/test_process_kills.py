"""Kills of what runs beside the services: Ray, found by its program, and `zelda up`, with which everything ends."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from cli.stack.process import ProcessSpec, SupervisedProcess
from shared.store.memory import MemoryStore
from tests.faults import live_system, process_kills
from tests.faults.injection import Injection
from tests.faults.live_system import LiveSystem
from tests.faults.process_kills import RAY_KILLS, RESTARTS, ray_kills, supervisor_kills

SLEEPS: Final = "import time; time.sleep(600)"
# Starts a child for each argument under this name, and prints how each of them ended.
DRIVER: Final = f"""
import subprocess, sys
children = [subprocess.Popen([name, "-c", "{SLEEPS}"], executable=sys.executable) for name in sys.argv[1:]]
print("started", flush=True)
for child in children:
    print(child.wait(), flush=True)
"""


class PlayingRing:
    """A ring whose driver records a segment whenever it is asked for their number."""

    def __init__(self, epochs: int = 0, trainer: int | None = None) -> None:
        self.segments = self.restarts = 0
        self.trainer = trainer or os.getpid()
        self.epochs = epochs

    async def segment_count(self) -> int:
        """One more than before."""
        self.segments += 1
        return self.segments

    async def has_finished(self, epoch: int) -> bool:
        """Whether so many epochs are played."""
        return epoch < self.epochs

    def process(self, _name: str) -> SimpleNamespace:
        """The trainer: this process, unless another one was given."""
        return SimpleNamespace(process=SimpleNamespace(pid=self.trainer))

    async def lose_supervisor(self) -> None:
        """Count."""
        self.restarts += 1


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_kills, "KILL_INTERVAL_S", (0.0, 0.0))


@pytest.fixture
def driver() -> Iterator["subprocess.Popen[str]"]:
    """A process with three children: two with the names of Ray's, and one with another name."""
    command = [sys.executable, "-c", DRIVER, "/ray/gcs_server", "/ray/raylet", "/ray/other"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "started\n"
        yield started
        os.killpg(started.pid, signal.SIGKILL)


def injection(ring: PlayingRing) -> Injection:
    """The faults of a round against this ring."""
    return Injection(cast(LiveSystem, ring), {}, random.Random(3))


async def test_processes_of_ray_are_killed_in_turn(
    driver: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_kills, "RAY_KILLS", 2)
    round_ = injection(PlayingRing(trainer=driver.pid))
    assert await ray_kills(round_) == "gcs_server killed 1 times, raylet killed 1 times"
    assert driver.stdout is not None
    assert [driver.stdout.readline() for _ in range(2)] == ["-9\n", "-9\n"]
    assert driver.poll() is None, "it waits for its third child"
    assert round_.hits == {"ray": Counter(kill=2)}


async def test_a_played_run_is_not_disturbed_any_more() -> None:
    round_ = injection(PlayingRing(epochs=2))
    assert await ray_kills(round_) == ""
    assert await supervisor_kills(round_) == "`zelda up` killed 0 times"
    assert round_.number == 0
    assert RAY_KILLS > 1


async def test_zelda_up_is_killed_and_started_again() -> None:
    ring = PlayingRing()
    round_ = injection(ring)
    await supervisor_kills(round_)
    assert (ring.restarts, round_.hits) == (RESTARTS, {"zelda up": Counter(kill=RESTARTS)})


class SleepingSystem:
    """A system of one server and one service that only sleep."""

    settings: Final[dict[str, str]] = {}
    connection: Final = None

    def __init__(self, folder: Path, messages: list[str]) -> None:
        async def ready() -> bool:
            return True

        def one(name: str) -> SupervisedProcess:
            spec = ProcessSpec(name, [sys.executable, "-c", SLEEPS], dict(os.environ), ready)
            return SupervisedProcess(spec, folder / f"{name}.log", messages.append)

        self.servers, self.services = [one("bus")], [one("judge")]
        self.supervisor: asyncio.Task[Any]

    async def start(self) -> None:
        """Start both."""
        for process in (*self.servers, *self.services):
            await process.start()

    async def supervise(self) -> None:
        """Restart what ends."""
        await asyncio.gather(*(process.supervise() for process in (*self.servers, *self.services)))

    async def stop(self) -> None:
        """Stop both."""
        self.supervisor.cancel()
        await asyncio.gather(*(process.stop() for process in (*self.servers, *self.services)))


async def test_with_zelda_up_all_processes_end_and_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_system, "local_store", lambda _: MemoryStore())
    monkeypatch.setattr(live_system, "open_client", lambda _: nullcontext())
    messages: list[str] = []
    ring = LiveSystem(cast(Any, lambda: SleepingSystem(tmp_path, messages)), ExitStack(), messages)
    await ring.start()
    before = ring.system
    waiting = asyncio.create_task(ring.wait_until(never, seconds=600))
    await ring.lose_supervisor()
    assert {one.exit_code for one in (*before.servers, *before.services)} == {-15}
    assert {one.exit_code for one in (*ring.system.servers, *ring.system.services)} == {None}
    assert not waiting.done()  # who waits for the run waits across the restart
    assert messages == []
    waiting.cancel()
    await ring.system.stop()


async def never() -> bool:
    """A condition that does not come true."""
    return False
