"""Drivers as child processes of the trainer service: one machine, no cluster. They end when the service does."""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Mapping

import structlog

from services.trainer.supervisor.backends.port import DriverLaunch, DriverStatus
from shared.config.configure import EXIT_CONFIG
from shared.errors import Transient

log = structlog.get_logger(__name__)

DRIVER = "services.trainer.driver"
KEPT_LINES = 20  # of a driver's standard error, to tell why it failed
DRAIN_S = 60.0  # an iteration and a checkpoint; a driver that needs longer is killed and resumes later
LAST_WORDS_S = 1.0  # for what a dead driver wrote to be read; its children may hold the pipe open for longer
LINE_LIMIT = 1 << 20


class LocalBackend:
    """Child processes, each with a task that passes its log lines on."""

    def __init__(self, environ: Mapping[str, str] = os.environ, drain_s: float = DRAIN_S) -> None:
        self._environ = dict(environ)
        self._drain_s = drain_s
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._last_lines: dict[str, deque[str]] = {}
        self._closing = False

    async def start(self, launch: DriverLaunch) -> None:
        """Start `python -m services.trainer.driver` in a session of its own; see the port."""
        if launch.name in self._processes:
            return
        if self._closing:
            raise Transient(f"no driver of {launch.run} is started any more: the service ends")
        former = ["--former", launch.former] if launch.former else []
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", DRIVER, "--run", launch.run, "--name", launch.name),
                *("--parent", str(os.getpid()), *former),
                env=self._environment(),
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_LIMIT,
                start_new_session=True,  # ctrl-C in a terminal is the supervisor's business
            )
        except OSError as error:
            raise Transient(f"no process for the driver of {launch.run}: {error}; look at memory and limits") from error
        self._processes[launch.name] = process
        self._last_lines[launch.name] = deque(maxlen=KEPT_LINES)
        self._readers[launch.name] = asyncio.create_task(self._pass_on(launch.name, process))
        log.info("driver started", run=launch.run, driver=launch.name, pid=process.pid)
        if self._closing:  # since it was asked for
            process.terminate()

    async def outcome(self, name: str) -> DriverStatus:
        """See the port."""
        process = self._processes.get(name)
        if process is None:
            return DriverStatus("ended")
        if process.returncode is None:
            return DriverStatus("running")
        if process.returncode == 0:
            return DriverStatus("ended")
        await asyncio.wait({self._readers[name]}, timeout=LAST_WORDS_S)
        return DriverStatus("failed", self._why(name, process.returncode), final=process.returncode == EXIT_CONFIG)

    async def close(self) -> None:
        """See the port. A driver that does not end in time is killed."""
        self._closing = True
        living = [process for process in self._processes.values() if process.returncode is None]
        for process in living:
            process.terminate()
        if living:
            _, late = await asyncio.wait([asyncio.create_task(one.wait()) for one in living], timeout=self._drain_s)
            for process in living if late else []:
                if process.returncode is None:
                    process.kill()
        await asyncio.gather(*self._readers.values(), return_exceptions=True)

    async def _pass_on(self, name: str, process: asyncio.subprocess.Process) -> None:
        if process.stderr is None:
            raise AssertionError("the driver was started without a pipe for its log")
        lost = 0
        while line := await self._line(process.stderr):
            self._last_lines[name].append(line.decode(errors="replace").strip())
            written = _written(line)
            if lost and written:
                log.warning("log lines of a driver were lost: standard error could not be written", driver=name, n=lost)
            lost = 0 if written else lost + 1
        await process.wait()

    @staticmethod
    async def _line(stream: asyncio.StreamReader) -> bytes:
        try:
            return await stream.readline()
        except ValueError:  # longer than LINE_LIMIT: the reader has dropped it
            return b"(a line of more than 1 MiB was left out)\n"

    def _why(self, name: str, code: int) -> str:
        told = next((line for line in reversed(self._last_lines[name]) if line), "").removeprefix("driver: ")
        if code == EXIT_CONFIG:
            return f"The driver refused the run: {told}"[:500]
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"The driver {how}: {told}"[:500]

    def _environment(self) -> dict[str, str]:
        # Its log is passed on line by line: no line may wait in a buffer or count as a repetition of another worker's.
        return {**self._environ, "PYTHONUNBUFFERED": "1", "RAY_DEDUP_LOGS": "0"}


def _written(line: bytes) -> bool:
    """Pass a line on. One that cannot be written (standard error is a file on a full disk, or closed) is let go: a
    driver whose pipe nobody empties would hang for ever, and its heartbeat would go on.
    """
    try:
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
    except (OSError, ValueError):
        return False
    return True
