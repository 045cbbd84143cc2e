"""Runs drivers as child processes of the trainer service: one machine, no cluster. They end with the service."""

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

DRIVER_MODULE = "services.trainer.driver"
KEPT_LINES = 20  # of a driver's standard error, to explain its failure
DRAIN_S = 60.0  # enough for an iteration and a checkpoint; a slower driver is killed and resumes later
LOG_DRAIN_S = 1.0  # to read the last lines of a dead driver, whose children may hold the pipe open for longer
LINE_LIMIT = 1 << 20


class LocalBackend:
    """Child processes, each with a task that forwards its log lines."""

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
            raise Transient(f"no driver of {launch.run} was started: the service is shutting down")
        former = ["--former", launch.former] if launch.former else []
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", DRIVER_MODULE, "--run", launch.run, "--name", launch.name),
                *("--parent", str(os.getpid()), *former),
                env=self._environment(),
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_LIMIT,
                start_new_session=True,  # ctrl-C in a terminal must reach the service alone
            )
        except OSError as error:
            raise Transient(
                f"the driver of {launch.run} could not be started: {error}; check memory and process limits"
            ) from error
        self._processes[launch.name] = process
        self._last_lines[launch.name] = deque(maxlen=KEPT_LINES)
        self._readers[launch.name] = asyncio.create_task(self._forward_log(launch.name, process))
        log.info("driver started", run=launch.run, driver=launch.name, pid=process.pid)
        if self._closing:  # `close` ran while the process started
            process.terminate()

    async def status(self, name: str) -> DriverStatus:
        """See the port."""
        process = self._processes.get(name)
        if process is None:
            return DriverStatus("ended")
        if process.returncode is None:
            return DriverStatus("running")
        if process.returncode == 0:
            return DriverStatus("ended")
        await asyncio.wait({self._readers[name]}, timeout=LOG_DRAIN_S)
        return DriverStatus("failed", self._why(name, process.returncode), final=process.returncode == EXIT_CONFIG)

    async def close(self) -> None:
        """See the port. A driver that does not end within the drain time is killed."""
        self._closing = True
        running = [process for process in self._processes.values() if process.returncode is None]
        for process in running:
            process.terminate()
        if running:
            _, late = await asyncio.wait([asyncio.create_task(one.wait()) for one in running], timeout=self._drain_s)
            for process in running if late else []:
                if process.returncode is None:
                    process.kill()
        await asyncio.gather(*self._readers.values(), return_exceptions=True)

    async def _forward_log(self, name: str, process: asyncio.subprocess.Process) -> None:
        if process.stderr is None:
            raise AssertionError("the driver has no pipe for its log")
        lost = 0
        while line := await self._read_line(process.stderr):
            self._last_lines[name].append(line.decode(errors="replace").strip())
            written = _written(line)
            if lost and written:
                log.warning("driver log lines lost: standard error unwritable", driver=name, n=lost)
            lost = 0 if written else lost + 1
        await process.wait()

    @staticmethod
    async def _read_line(stream: asyncio.StreamReader) -> bytes:
        try:
            return await stream.readline()
        except ValueError:  # longer than LINE_LIMIT: the reader dropped it
            return b"(a line over 1 MiB was dropped)\n"

    def _why(self, name: str, code: int) -> str:
        last_line = next((line for line in reversed(self._last_lines[name]) if line), "").removeprefix("driver: ")
        if code == EXIT_CONFIG:
            return f"The driver refused the run: {last_line}"[:500]
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"The driver {how}: {last_line}"[:500]

    def _environment(self) -> dict[str, str]:
        # The log is forwarded line by line: nothing may wait in a buffer, and Ray must not drop repeated lines.
        return {**self._environ, "PYTHONUNBUFFERED": "1", "RAY_DEDUP_LOGS": "0"}


def _written(line: bytes) -> bool:
    """Forward a line to standard error; return False if that is closed or its disk is full.

    The line is then dropped: a driver whose pipe fills up would hang, while its heartbeat continued.
    """
    try:
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
    except (OSError, ValueError):
        return False
    return True
