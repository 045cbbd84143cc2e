"""Supervised processes restart after a crash, and none remains after the end."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from cli.errors import USAGE, CliError
from cli.stack.ports import PortAllocator, is_free, usual_port
from cli.stack.process import ProcessSpec, StackError, SupervisedProcess


def supervised(
    tmp_path: Path, program: str, messages: list[str] | None = None, grace_s: float = 5.0
) -> SupervisedProcess:
    """A supervised Python program; it is ready when its log is not empty."""
    log = tmp_path / "program.log"

    async def ready() -> bool:
        return log.exists() and log.stat().st_size > 0

    spec = ProcessSpec("program", [sys.executable, "-c", program], dict(os.environ), ready, grace_s)
    return SupervisedProcess(spec, log, (messages if messages is not None else []).append)


SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
PARENT = (
    "import subprocess, sys, time\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "print(child.pid, flush=True); time.sleep(600)"
)


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second one: it ends between opening and reading
        return False


async def test_a_killed_process_is_restarted(tmp_path: Path) -> None:
    messages: list[str] = []
    one = supervised(tmp_path, SLEEPER, messages)
    await one.start()
    supervisor = asyncio.create_task(one.supervise())
    assert one.process is not None
    first = one.process.pid
    os.kill(first, signal.SIGKILL)
    async with asyncio.timeout(30):
        while one.process.pid == first:  # noqa: ASYNC110 - another process has no event to offer
            await asyncio.sleep(0.02)
    assert one.restarts == 1
    assert messages == ["program exited with code -9; restarting in 0.5 s"]
    await one.stop()
    await supervisor
    assert one.exit_code is not None


async def test_a_process_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    messages: list[str] = []
    one = supervised(tmp_path, DEAF, messages, grace_s=0.3)
    await one.start()
    await one.stop()
    assert one.exit_code == -signal.SIGKILL
    assert messages == ["program did not stop within 0 s; killing it"]


async def test_the_children_of_a_process_stop_with_it(tmp_path: Path) -> None:
    one = supervised(tmp_path, PARENT)
    await one.start()
    child = int(one.log.read_text())
    await one.stop()
    await asyncio.sleep(0.2)
    assert not alive(child)


async def test_a_process_that_never_gets_ready_is_reported_with_its_last_line(tmp_path: Path) -> None:
    one = supervised(tmp_path, "raise SystemExit('no such bus')")

    async def never() -> bool:
        return False

    one.spec = ProcessSpec("program", one.spec.command, one.spec.environment, never)
    with pytest.raises(StackError, match="program did not become ready: no such bus"):
        await one.start()
    await one.stop()


async def test_a_rejected_configuration_is_not_retried(tmp_path: Path) -> None:
    one = supervised(tmp_path, "print('ZELDA_BUS__URL: not a bus', flush=True); raise SystemExit(2)")

    async def run() -> None:
        await one.start()  # fails here, unless the program was ready before it ended
        await one.supervise()

    with pytest.raises(StackError, match="program rejects its configuration: ZELDA_BUS__URL: not a bus"):
        await run()
    assert one.restarts == 0


def test_the_page_of_a_directory_keeps_its_port(tmp_path: Path) -> None:
    first, again = (usual_port(tmp_path / "system") for _ in range(2))
    assert first is not None
    assert first == again
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first))
        taken.listen()
        assert usual_port(tmp_path / "system") is None  # any free port serves instead
    assert len({usual_port(tmp_path / str(number)) for number in range(20)}) > 10


def test_ports_are_allocated_once_and_a_used_port_is_refused() -> None:
    ports = PortAllocator()
    given = [ports.allocate() for _ in range(20)]
    assert len(set(given)) == 20
    assert all(is_free(port) for port in given)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(CliError, match=f"Port {number} is in use: choose another port") as refused:
            ports.allocate(number)
    assert refused.value.code == USAGE


SUPERVISOR = """
import asyncio, sys
from pathlib import Path
from tests.unit.cli.test_processes import SLEEPER, supervised

async def main():
    one = supervised(Path(sys.argv[1]), SLEEPER)
    await one.start()
    print(one.process.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals the children of a killed parent")
async def test_processes_stop_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    supervisor = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SUPERVISOR, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert supervisor.stdout is not None
    child = int(await supervisor.stdout.readline())
    supervisor.kill()
    await supervisor.wait()
    await asyncio.sleep(0.3)
    assert not alive(child)
