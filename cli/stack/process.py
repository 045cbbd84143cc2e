"""One supervised process: start it, know when it is ready, start it again when it crashes, end it in order.

Output goes to a file, never through this process, so that a chatty service cannot block on us.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cli.stack.signals import die_with_parent

READY_S: Final = 60.0
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 15.0
STABLE_S: Final = 30.0  # a process that lived so long is taken for healthy: the next crash starts with a short pause
WRONG_CONFIG: Final = 2  # a service's exit code for a configuration that no restart can mend


class StackError(Exception):
    """The system on this machine cannot go on. The message is one sentence for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """How to start a process. `ready` answers whether it can be used; it is asked until it says yes.

    `environment` is the whole environment of the process, so that nothing of the terminal's leaks into it.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    ready: Callable[[], Awaitable[bool]]
    grace_s: float = 30.0


@dataclass(slots=True)
class SupervisedProcess:
    """A process and what happened to it. `tell` gets one sentence for people at each event."""

    spec: ProcessSpec
    log: Path
    tell: Callable[[str], None]
    restarts: int = 0
    process: asyncio.subprocess.Process | None = None
    _ending: bool = field(default=False)

    async def start(self) -> None:
        """Start and wait until it is ready; raise StackError with the end of its log otherwise."""
        await self._spawn()
        deadline = time.monotonic() + READY_S
        while not await self.spec.ready():
            if self.exited is not None or time.monotonic() > deadline:
                raise StackError(f"{self.spec.name} did not become ready: {self.last_line()} (log: {self.log})")
            await asyncio.sleep(0.1)

    async def keep(self) -> None:
        """Start it again whenever it ends, with growing pauses, until `end` is called."""
        pause = FIRST_PAUSE_S
        while not self._ending:
            assert self.process is not None
            started = time.monotonic()
            code = await self.process.wait()
            if self._ending:
                return
            if code == WRONG_CONFIG:
                raise StackError(f"{self.spec.name} refuses its configuration: {self.last_line()} (log: {self.log})")
            pause = FIRST_PAUSE_S if time.monotonic() - started > STABLE_S else pause
            self.restarts += 1
            self.tell(f"{self.spec.name} ended with code {code}; starting it again in {pause:.1f} s")
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)
            if not self._ending:
                await self._spawn()

    async def end(self) -> None:
        """SIGTERM, and SIGKILL to the whole group when the grace is over. Leaves nothing running."""
        self._ending = True
        if self.process is None:
            return
        if self.exited is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.process.wait(), self.spec.grace_s)
        except TimeoutError:
            self.tell(f"{self.spec.name} did not end in {self.spec.grace_s:.0f} s and is killed")
        self._kill_group(self.process.pid)
        await self.process.wait()

    @property
    def exited(self) -> int | None:
        """Exit code, or None while it runs."""
        return self.process.returncode if self.process else None

    def last_line(self) -> str:
        """The last line that it wrote: usually the reason."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return lines[-1][:400] if lines else "it wrote nothing"

    async def _spawn(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self.process = await asyncio.create_subprocess_exec(
                *self.spec.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(self.spec.environment),
                start_new_session=True,  # ctrl-C reaches us alone; we end the others in order
                preexec_fn=die_with_parent,
            )

    @staticmethod
    def _kill_group(pid: int) -> None:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
