"""One supervised process: start it, wait until it is ready, restart it after a crash, stop it.

Its output goes straight to a log file, so that a verbose service never blocks on this process.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cli.stack.port_owner import listens
from cli.stack.ports import is_free
from cli.stack.signals import die_with_parent

READY_S: Final = 60.0
FIRST_PAUSE_S: Final = 0.5
MAX_PAUSE_S: Final = 15.0
STABLE_S: Final = 30.0  # after this uptime the restart backoff starts again from its shortest pause
WRONG_CONFIG: Final = 2  # a service's exit code for a configuration that no restart can fix

Repair = Callable[[], Awaitable[str | None]]
"""Returns a sentence for the user if it changed anything, or raises StackError."""

Repairs = Mapping[int, Repair]
NO_REPAIRS: Final[Repairs] = MappingProxyType({})


async def nothing_to_mend() -> None:
    """The repair that changes nothing."""


class StackError(Exception):
    """The local stack cannot start or continue. The message is one sentence for the user."""


class PortTaken(StackError):
    """Another program took a port between its choice and its use: a start on other ports can succeed."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """How to start a process. `ready` is polled until it returns True.

    `environment` is the complete environment: variables of the terminal do not leak into the process. It listens on
    `ports`, the first of which `ready` asks. `repairs` maps an exit code to what makes a restart useful; `prepare`
    mends the process's files before each start.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    ready: Callable[[], Awaitable[bool]]
    grace_s: float = 30.0
    ready_s: float = READY_S
    ports: Sequence[int] = ()
    repairs: Repairs = field(default_factory=lambda: NO_REPAIRS)
    prepare: Repair = nothing_to_mend


@dataclass(slots=True)
class SupervisedProcess:
    """A process that is restarted when it crashes. `report` receives one sentence per event."""

    spec: ProcessSpec
    log: Path
    report: Callable[[str], None]
    restarts: int = 0
    process: asyncio.subprocess.Process | None = None
    _stopping: bool = field(default=False)

    async def start(self) -> None:
        """Start the process and wait until it is ready; StackError quotes the last line of its log."""
        await self._spawn()
        deadline = time.monotonic() + self.spec.ready_s
        while True:
            # In this order: an answer at the port must not be taken for that of a process that has exited.
            ended, answered = self.exit_code is not None, await self.spec.ready()
            if taken := self._taken_port(ended, answered):
                raise PortTaken(f"{self.spec.name} did not start: another program uses port {taken}.")
            if answered and not ended:
                return
            if self.exit_code == WRONG_CONFIG:
                raise self._rejected_configuration()
            if ended or time.monotonic() > deadline:
                raise StackError(f"{self.spec.name} did not become ready: {self.last_line()} (log: {self.log})")
            await asyncio.sleep(0.1)

    async def supervise(self) -> None:
        """Restart the process whenever it exits, with growing pauses, until `stop` is called."""
        pause = FIRST_PAUSE_S
        while not self._stopping:
            assert self.process is not None
            started = time.monotonic()
            code = await self.process.wait()
            if self._stopping:
                return
            if code == WRONG_CONFIG:
                raise self._rejected_configuration()
            pause = FIRST_PAUSE_S if time.monotonic() - started > STABLE_S else pause
            self.restarts += 1
            self.report(f"{self.spec.name} exited with code {code}; restarting in {pause:.1f} s")
            await self._repair(self.spec.repairs.get(code, nothing_to_mend))
            await asyncio.sleep(pause)
            pause = min(pause * 2, MAX_PAUSE_S)
            if not self._stopping:
                await self._spawn()

    def _rejected_configuration(self) -> StackError:
        return StackError(f"{self.spec.name} rejects its configuration: {self.last_line()} (log: {self.log})")

    async def _repair(self, repair: Repair) -> None:
        try:
            if done := await repair():
                self.report(done)
        except StackError as error:  # the next start tries again
            self.report(str(error))

    def _taken_port(self, ended: bool, answered: bool) -> int | None:
        """The port that another program uses instead of this process, if any."""
        if self.process is None or not (ended or answered):
            return None
        wanted = self.spec.ports if ended else self.spec.ports[:1]
        return next((one for one in wanted if not is_free(one) and not listens(self.process.pid, one)), None)

    async def stop(self) -> None:
        """Send SIGTERM; after the grace period, or when this is cancelled, kill the whole process group."""
        self._stopping = True
        if self.process is None:
            return
        if self.exit_code is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.process.wait(), self.spec.grace_s)
        except TimeoutError:
            self.report(f"{self.spec.name} did not stop within {self.spec.grace_s:.0f} s; killing it")
        finally:
            await self.kill()

    async def kill(self) -> None:
        """End the whole process group immediately: for a server that no process calls any more."""
        self._stopping = True
        if self.process is not None:
            self._kill_group(self.process.pid)
            await self.process.wait()

    @property
    def exit_code(self) -> int | None:
        """Exit code, or None while the process runs."""
        return self.process.returncode if self.process else None

    def last_line(self, characters: int = 400) -> str:
        """The last line of its log, at most so much of it: usually the reason of a crash."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return lines[-1][:characters] if lines else "its log is empty"

    async def _spawn(self) -> None:
        await self._repair(self.spec.prepare)
        self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.log.touch(mode=0o600)
        with self.log.open("ab") as output:
            self.process = await asyncio.create_subprocess_exec(
                *self.spec.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(self.spec.environment),
                start_new_session=True,  # ctrl-C reaches the supervisor alone, which stops the processes in order
                preexec_fn=_prepare_child,
            )

    @staticmethod
    def _kill_group(pid: int) -> None:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def _prepare_child() -> None:
    """In the new process: what it writes is readable by its owner only, and it ends with its supervisor."""
    os.umask(0o077)
    die_with_parent()
