"""Drivers as processes beside the service: how one ended decides whether another is worth a try."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from services.trainer.settings import TrainerSettings
from services.trainer.supervisor.backends import local
from services.trainer.supervisor.backends.local import LocalBackend
from services.trainer.supervisor.backends.port import DriverLaunch, DriverStatus
from services.trainer.wiring import make_backend
from shared.config.settings import ShutdownSettings, StoreSettings
from shared.errors import Transient
from shared.store.object_store import local_store
from tests.unit.trainer.run_fixtures import CONFIG, RUN, order, run_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


async def ended(environ: dict[str, str]) -> DriverStatus:
    """How a driver ends that receives only this environment."""
    backend = LocalBackend({"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **environ})
    await backend.start(DriverLaunch(RUN, "d1"))
    while (status := await backend.status("d1")).state == "running":  # noqa: ASYNC110 - a process has no event
        await asyncio.sleep(0.1)
    await backend.close()
    return status


async def test_a_game_without_its_rom_is_refused_for_good(tmp_path: Path) -> None:
    store, config = local_store(tmp_path), CONFIG.model_copy(update={"game": "oracle-of-seasons"})
    await run_in(store, config=config)
    await order(store, config=config)
    status = await ended({"ZELDA_STORE__URL": f"file://{tmp_path}"})
    sentence = "The driver refused the run: oracle-of-seasons needs your own ROM image: name the .gbc file with --rom"
    assert (status.state, status.final) == ("failed", True)
    assert (status.reason or "").startswith(sentence)


async def test_a_wrong_setting_is_refused_for_good() -> None:
    status = await ended({"ZELDA_STORE__URL": "nowhere"})
    assert status.final
    assert "ZELDA_STORE__URL: 'nowhere' is not a store" in (status.reason or "")


CHATTY = "import sys; [sys.stderr.write(f'{n} ' + 'x' * 100 + chr(10)) for n in range(30_000)]; sys.exit('the end')"
"""A driver that writes more than a pipe and its reader hold."""


async def test_a_driver_goes_on_while_its_log_lines_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chatty.py").write_text(CHATTY)
    monkeypatch.setattr(local, "DRIVER_MODULE", "chatty")
    full_disk = Path("/dev/full").open("w")  # noqa: ASYNC230, SIM115 - closing it fails as writing does
    monkeypatch.setattr(sys, "stderr", full_disk)
    status = await asyncio.wait_for(ended({"PYTHONPATH": str(tmp_path)}), 30)
    assert status == DriverStatus("failed", "The driver ended with code 1: the end")
    with suppress(OSError):
        full_disk.close()


@pytest.mark.parametrize(("drain_s", "patience_s"), [(None, 60.0), (135.0, 125.0), (5.0, 1.0)])
def test_a_driver_has_less_time_to_end_than_its_service(
    drain_s: float | None, patience_s: float, tmp_path: Path
) -> None:
    store, shutdown = StoreSettings(url=f"file://{tmp_path}"), ShutdownSettings(drain_s=drain_s)
    made = make_backend(TrainerSettings(store=store, shutdown=shutdown))
    assert isinstance(made, LocalBackend)
    assert made._drain_s == patience_s


async def test_a_machine_without_free_processes_only_delays_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")  # as good as any other reason of the system
    backend = LocalBackend({})
    with pytest.raises(Transient, match="the driver of demo could not be started"):
        await backend.start(DriverLaunch(RUN, "d1"))
    assert await backend.status("d1") == DriverStatus("ended")


async def test_a_service_that_ends_leaves_no_starting_driver_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sleeper.py").write_text("import time; time.sleep(100)")
    monkeypatch.setattr(local, "DRIVER_MODULE", "sleeper")
    backend = LocalBackend({"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)})
    starting = asyncio.create_task(backend.start(DriverLaunch(RUN, "d1")))
    await asyncio.sleep(0)  # it is on its way
    await backend.close()
    await starting
    process = backend._processes["d1"]
    assert await asyncio.wait_for(process.wait(), 30) != 0
    with pytest.raises(Transient, match="the service is shutting down"):
        await backend.start(DriverLaunch(RUN, "d2"))
    assert await backend.status("d2") == DriverStatus("ended")
    await backend.close()
