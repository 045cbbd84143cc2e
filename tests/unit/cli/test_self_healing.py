"""The local stack repairs itself: taken ports, lost streams, and servers that answer and refuse to store."""

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from cli.client import find_connection
from cli.errors import CliError
from cli.stack import local_stack
from cli.stack.layout import Connection
from cli.stack.local_stack import LocalStack, StackOptions, run_stack
from cli.stack.port_owner import listens
from cli.stack.process import PortTaken, ProcessSpec, StackError, SupervisedProcess
from cli.stack.server_guard import PATIENCE_S, REFUSED_S, ServerGuard
from shared.errors import Transient
from tests.servers import free_ports

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"


async def _ready() -> bool:
    return True


def process(folder: Path, program: str, messages: list[str], **more: object) -> SupervisedProcess:
    """A supervised Python program whose port somebody answers."""
    spec = ProcessSpec("store", [sys.executable, "-c", program], dict(os.environ), _ready, 1.0, **more)  # type: ignore[arg-type]
    return SupervisedProcess(spec, folder / "store.log", messages.append)


@pytest.mark.parametrize("program", [SLEEPER, "raise SystemExit('address in use')"])
async def test_an_answer_of_another_program_is_not_ours(tmp_path: Path, program: str) -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        assert listens(os.getpid(), port)
        one = process(tmp_path, program, [], ports=(port,))
        with pytest.raises(PortTaken, match=f"store did not start: another program uses port {port}"):
            await one.start()
        await one.stop()


async def test_a_start_on_a_taken_port_begins_again_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[object] = []
    messages: list[str] = []

    async def start(system: LocalStack) -> None:
        system.connection_saved = bool(stops)
        if not stops:
            raise PortTaken("bus did not start: another program uses port 4222.")

    async def supervise(_: LocalStack) -> None:
        return

    async def stop(system: LocalStack) -> None:
        stops.append(system)

    monkeypatch.setattr(local_stack.LocalStack, "start", start)
    monkeypatch.setattr(local_stack.LocalStack, "stop", stop)
    monkeypatch.setattr(local_stack.LocalStack, "supervise", supervise)
    async with run_stack(StackOptions(tmp_path), messages.append) as system:
        assert system is not stops[0]
    assert messages == ["bus did not start: another program uses port 4222. Starting again on other ports."]


async def test_lost_streams_are_made_again_before_a_restart(tmp_path: Path) -> None:
    messages: list[str] = []
    repaired = asyncio.Event()

    async def repair() -> str:
        repaired.set()
        return "The bus had lost streams."

    one = process(tmp_path, "raise SystemExit(4)", messages, repairs={4: repair})
    await one._spawn()
    supervising = asyncio.create_task(one.supervise())
    await asyncio.wait_for(repaired.wait(), 30)
    await one.stop()
    supervising.cancel()
    assert messages[:2] == ["store exited with code 4; restarting in 0.5 s", "The bus had lost streams."]


async def test_files_are_mended_before_each_start_and_a_failure_stops_none(tmp_path: Path) -> None:
    messages: list[str] = []
    answers = iter(["store: rebuilt an index.", StackError("store: its index is cut off; free some space."), None])

    async def prepare() -> str | None:
        answer = next(answers)
        if isinstance(answer, StackError):
            raise answer
        return answer

    one = process(tmp_path, SLEEPER, messages, prepare=prepare)
    for expected in (1, 2, 2):
        await one.start()
        assert len(messages) == expected
        await one.stop()
    assert messages == ["store: rebuilt an index.", "store: its index is cut off; free some space."]


class Server:
    """A guarded server with a clock and a disk of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.messages: list[str] = []
        self.time, self.free_mb, self.refuses = 0.0, 10_000.0, False
        self.process = process(folder, SLEEPER, self.messages)
        self.guard = ServerGuard(self.process, self._store, lambda: self.free_mb, lambda: self.time)

    async def _store(self) -> None:
        if self.refuses:
            raise Transient("500 InternalError")

    async def pass_time(self, seconds: float) -> None:
        """Check at the beginning and at the end of these seconds."""
        await self.guard.check()
        self.time += seconds
        await self.guard.check()


async def ended(one: SupervisedProcess) -> bool:
    """Whether the process was ended."""
    assert one.process is not None
    await asyncio.wait_for(one.process.wait(), 10)
    return one.exit_code == -9


async def assert_restarted_with_space(server: Server) -> None:
    """Free the disk: the guard restarts the server, says so, and says once that it stores again."""
    said = len(server.messages)
    server.free_mb = 10_000.0
    await server.guard.check()
    assert "has space again; restarting it" in server.messages[said]
    assert await ended(server.process)
    await server.guard.check()
    await server.guard.check()
    assert server.messages[said + 1 :] == ["store stores again."]
    await server.process.stop()


async def test_a_server_that_refuses_to_store_is_restarted(tmp_path: Path) -> None:
    server = Server(tmp_path)
    await server.process.start()
    server.refuses = True
    await server.pass_time(REFUSED_S - 1)
    assert server.messages == []
    await server.pass_time(1)
    assert server.messages == [f"store refuses to store for {REFUSED_S:.0f} s (500 InternalError); restarting it"]
    assert await ended(server.process)
    await server.pass_time(PATIENCE_S - 1)
    assert len(server.messages) == 1  # it is starting
    await server.process.stop()


async def test_a_full_disk_is_reported_and_the_server_restarted_afterwards(tmp_path: Path) -> None:
    server = Server(tmp_path)
    await server.process.start()
    server.refuses, server.free_mb = True, 3.0
    await server.pass_time(10 * REFUSED_S)
    assert server.messages == ["store cannot store: its disk has 3 MB left; free some space."]
    assert server.process.exit_code is None
    server.free_mb = 10_000.0
    await server.guard.check()
    assert "restarting it" in server.messages[1]
    assert await ended(server.process)
    server.refuses = False
    await server.guard.check()
    assert server.messages[2] == "store stores again."
    await server.process.stop()


async def test_a_server_is_restarted_after_a_full_disk_though_it_stores(tmp_path: Path) -> None:
    server = Server(tmp_path)
    await server.process.start()
    server.refuses, server.free_mb = True, 3.0
    await server.guard.check()
    server.refuses = False  # a small object finds room, or lies in a part that did not meet the full disk
    await server.guard.check()
    assert server.process.exit_code is None  # the disk is still full
    assert len(server.messages) == 1
    await assert_restarted_with_space(server)


async def test_a_server_whose_probe_missed_a_full_disk_is_restarted(tmp_path: Path) -> None:
    server = Server(tmp_path)
    await server.process.start()
    server.free_mb = 3.0
    await server.guard.check()
    assert server.messages == []  # it answers, and one stream of it may refuse
    await assert_restarted_with_space(server)


def test_no_token_goes_to_a_program_on_a_port_of_an_ended_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (port,) = free_ports(1)
    token = tmp_path / "token"
    token.write_text("secret")
    (tmp_path / "runs/.local").mkdir(parents=True)
    with socket.create_server(("127.0.0.1", port)):
        Connection(f"http://127.0.0.1:{port}", token, os.getpid(), {}).save(tmp_path / "runs/.local/connection.json")
        assert find_connection().url.endswith(str(port))  # this process listens
        stranger = 2**22 + 1  # above the largest process id: the system has ended
        Connection(f"http://127.0.0.1:{port}", token, stranger, {}).save(tmp_path / "runs/.local/connection.json")
        with pytest.raises(CliError, match="no longer runs"):
            find_connection()
