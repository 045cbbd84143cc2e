"""`zelda up` stops at any time, and everything that it has started stops with it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.__main__ import exit_code_of
from cli.errors import FAILED, INTERRUPTED, OK, USAGE
from tests.unit.cli.test_processes import alive

SYSTEM = """
import os, sys
from pathlib import Path
from cli.__main__ import exit_code_of
from cli.stack import local_stack
from cli.stack.process import ProcessSpec
from tests.unit.cli.test_processes import DEAF, SLEEPER

root, mode = Path(sys.argv[1]), sys.argv[2]

async def ready():
    return mode != "starting"

async def nothing(*_):
    return None

def spec(name):
    note = f"import os, pathlib; pathlib.Path({str(root)!r}, '{name}.pid').write_text(str(os.getpid()));"
    program = DEAF if mode == "deaf" and name == "judge" else SLEEPER
    return ProcessSpec(name, [sys.executable, "-c", note + program], dict(os.environ), ready)

local_stack.nats_spec = lambda *_: spec("bus")
local_stack.rules_judge_spec = lambda *_: spec("rules-judge")
local_stack.service_spec = lambda name, *_: spec(name)
local_stack.provision = nothing
local_stack.guard_servers = lambda *_: []
sys.exit(exit_code_of(["up", "--root", str(root), "--store", str(root / "store")]))
"""
"""`zelda up` with sleeping programs in the place of servers and services. In the mode `starting` none gets ready; in
the mode `deaf` the judge ignores SIGTERM."""

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads processes from /proc")


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def started(root: Path) -> dict[str, int]:
    """Process ids of the programs that have started, by name."""
    return {file.stem: int(file.read_text()) for file in root.glob("*.pid") if file.stat().st_size}


@contextmanager
def running_up(root: Path, mode: str, programs: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the command; begin when so many programs have started."""
    command = subprocess.Popen([sys.executable, "-c", SYSTEM, str(root), mode])
    try:
        wait_until(lambda: len(started(root)) == programs)
        yield command
    finally:
        command.kill()
        command.wait()
        for pid in filter(alive, started(root).values()):  # of a test that failed
            os.kill(pid, signal.SIGKILL)


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_start_stops_what_has_started(number: signal.Signals, tmp_path: Path) -> None:
    with running_up(tmp_path, "starting", 2) as command:
        command.send_signal(number)
        assert command.wait(20) == INTERRUPTED
        assert not any(map(alive, started(tmp_path).values()))


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_running_system_with_success(number: signal.Signals, tmp_path: Path) -> None:
    with running_up(tmp_path, "ready", 7) as command:
        wait_until((tmp_path / "ended.json").exists)
        command.send_signal(number)
        assert command.wait(20) == OK
        assert not any(map(alive, started(tmp_path).values()))
    assert not (tmp_path / "connection.json").exists()


@linux
def test_a_second_signal_kills_what_does_not_stop(tmp_path: Path) -> None:
    with running_up(tmp_path, "deaf", 7) as command:
        programs = started(tmp_path)
        wait_until((tmp_path / "ended.json").exists)
        command.send_signal(signal.SIGINT)
        wait_until(lambda: not alive(programs["trainer"]))
        assert alive(programs["judge"])
        command.send_signal(signal.SIGINT)
        assert command.wait(20) == INTERRUPTED
        assert not any(map(alive, programs.values()))


def test_a_taken_port_is_refused_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert exit_code_of(["up", "--root", str(tmp_path), "--port", str(port)]) == USAGE
    assert capsys.readouterr().err.startswith(f"zelda: Port {port} is in use: choose another port")


def test_a_value_error_in_the_system_shows_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("Expecting value: line 1 column 1 (char 0)")

    monkeypatch.setattr("cli.stack.local_stack.common_settings", broken)
    assert exit_code_of(["up", "--root", str(tmp_path)]) == FAILED
    assert "Traceback" in capsys.readouterr().err
