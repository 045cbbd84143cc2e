"""The contract of every driver backend: the fake of the trainer's tests, and local processes.

`tests/integration/test_ray_jobs.py` checks Ray jobs, because a cluster takes a minute to start.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.trainer.supervisor.backends import local
from services.trainer.supervisor.backends.local import LocalBackend
from services.trainer.supervisor.backends.port import Backend, DriverLaunch, DriverStatus
from tests.unit.trainer.run_fixtures import RUN, FakeBackend


class Place:
    """A backend, and what can happen to its drivers."""

    def __init__(self, backend: FakeBackend | LocalBackend) -> None:
        self.backend: Backend = backend
        self._real = backend

    async def kill(self, name: str) -> None:
        """The driver is killed, and the backend has noticed."""
        if isinstance(self._real, FakeBackend):
            self._real.statuses[name] = DriverStatus("failed", "killed")
            return
        process = self._real._processes[name]
        os.kill(process.pid, signal.SIGKILL)
        await asyncio.wait_for(process.wait(), 10)


@pytest.fixture(params=["fake", "local"])
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Place]:
    """A place without drivers, whose drivers do nothing."""
    if request.param == "fake":
        yield Place(FakeBackend())
        return
    (tmp_path / "idle_driver.py").write_text("import time; time.sleep(600)")
    monkeypatch.setattr(local, "DRIVER_MODULE", "idle_driver")
    backend = LocalBackend({"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}, drain_s=5)
    yield Place(backend)
    await backend.close()


async def test_unknown_driver_counts_as_ended(place: Place) -> None:
    assert await place.backend.status("demo-1") == DriverStatus("ended")


async def test_started_driver_runs_until_it_fails_with_a_reason(place: Place) -> None:
    await place.backend.start(DriverLaunch(RUN, "demo-1"))
    assert await place.backend.status("demo-1") == DriverStatus("running")
    await place.kill("demo-1")
    status = await place.backend.status("demo-1")
    assert (status.state, status.final) == ("failed", False)
    assert "killed" in (status.reason or "")


async def test_driver_name_is_started_once(place: Place) -> None:
    for _ in range(2):
        await place.backend.start(DriverLaunch(RUN, "demo-1"))
        assert (await place.backend.status("demo-1")).state == "running"
    await place.kill("demo-1")
    await place.backend.start(DriverLaunch(RUN, "demo-1"))
    assert (await place.backend.status("demo-1")).state == "failed"
