"""The preStop hook of Ray's head: drivers end by a signal, and get time to write their checkpoint."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from services.trainer.driver import stop

OBEYS = "import signal, time; signal.signal(15, lambda *_: exit(0)); print('up', flush=True); time.sleep(60)"
IGNORES = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
Driver = subprocess.Popen[bytes]


def process(code: str, *words: str) -> Driver:
    started = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE)
    assert started.stdout is not None
    started.stdout.readline()
    return started


@pytest.fixture
def own_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Driver]]:
    """Processes of this test; the drivers of other tests on this machine stay unseen."""
    own: list[Driver] = []
    everyone = stop.drivers
    monkeypatch.setattr(stop, "drivers", lambda: [one for one in everyone() if one in {p.pid for p in own}])
    yield own
    for one in own:
        one.kill()
        one.communicate()


@pytest.mark.parametrize("module", ["services.trainer.driver", "services.trainer.rl.driver"])
def test_a_driver_is_asked_to_stop_and_awaited(module: str, own_processes: list[Driver]) -> None:
    driver = process(OBEYS, "-m", module, "--run", "first")
    own_processes.append(driver)
    assert stop.drivers() == [driver.pid]
    assert stop.main(["--seconds", "20"]) == 0
    assert driver.wait(5) == 0


def test_other_processes_are_left_alone(own_processes: list[Driver]) -> None:
    shell = process(IGNORES, "python -m services.trainer.driver --run first")  # Ray's shell around a driver
    own_processes.append(shell)
    assert stop.main(["--seconds", "0.1"]) == 0
    assert shell.poll() is None


def test_a_driver_that_does_not_end_is_reported(
    own_processes: list[Driver], capsys: pytest.CaptureFixture[str]
) -> None:
    driver = process(IGNORES, "-m", "services.trainer.driver")
    own_processes.append(driver)
    assert stop.main(["--seconds", "0.3"]) == 1
    assert f"drivers still run: {driver.pid}" in capsys.readouterr().err
