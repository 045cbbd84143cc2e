"""Real servers for tests, on free ports of the loopback interface: a NATS server and an S3 server.

`tests/conftest.py` makes them fixtures (`nats_server`: one process per test; `s3_server`: one per test session). A test
that wants to kill or pause a server starts its own with `NatsServer(...)`.
"""

import asyncio
import os
import secrets
import signal
import subprocess
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from cli.stack.ports import PortAllocator
from cli.stack.servers import find_program
from shared.config.settings import BusSettings, StoreSettings
from shared.errors import Transient

START_S = 20.0
Answer = TypeVar("Answer")


def free_ports(number: int) -> list[int]:
    """Different free ports whose number plus 10,000 is also free: the S3 server opens a second port there."""
    ports = PortAllocator()
    return [ports.allocate() for _ in range(number)]


async def when_back(call: Callable[[], Awaitable[Answer]], seconds: float = 30) -> Answer:
    """What `call` returns once its server answers; the last error if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return await call()
        except Transient:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.2)


class _Server(ABC):
    """A child process that is ended with its owner."""

    process: "subprocess.Popen[bytes] | None" = None

    @abstractmethod
    def command(self) -> list[str]:
        """The command line; may write configuration files."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether the server can be used now."""

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def start(self) -> Self:
        """Start and wait for the first answer."""
        self.process = subprocess.Popen(
            self.command(), env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_S
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.command()[0]} did not start (exit code {self.process.poll()})")
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """SIGTERM, and SIGKILL after three seconds: nothing that a test's server holds is needed again."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None

    def kill(self) -> None:
        """kill -9."""
        self.signal(signal.SIGKILL)
        assert self.process is not None
        self.process.wait(10)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, e.g. SIGSTOP to pause; a pause is waited for, because threads stop one after the other."""
        assert self.process is not None
        self.process.send_signal(number)
        while number == signal.SIGSTOP and not self._stopped():
            time.sleep(0.005)

    def _stopped(self) -> bool:
        """Whether every thread of the process stands still."""
        assert self.process is not None
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/stat")
        return all(task.read_text().rpartition(")")[2].split()[0] in "tT" for task in tasks)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


class NatsServer(_Server):
    """nats-server with JetStream in `directory`. `users` is an `authorization` block, or empty for none."""

    def __init__(self, directory: Path, users: str = "") -> None:
        self.port, self.monitor = free_ports(2)
        self._directory, self._users = directory, users

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def settings(self) -> BusSettings:
        return BusSettings(url=self.url)

    def command(self) -> list[str]:
        configuration = self._directory / "nats.conf"
        configuration.write_text(
            f"listen: 127.0.0.1:{self.port}\nhttp: 127.0.0.1:{self.monitor}\n"
            f'jetstream {{ store_dir: "{self._directory}/jetstream", max_file_store: 2GB }}\n{self._users}\n'
        )
        return [find_program("nats-server"), "-c", str(configuration)]

    def answers(self) -> bool:
        return _ok(f"http://127.0.0.1:{self.monitor}/healthz")


class S3Server(_Server):
    """SeaweedFS in its small form, with one access key."""

    def __init__(self, directory: Path) -> None:
        self.ports = dict(zip(("s3", "master", "volume", "filer", "admin"), free_ports(5), strict=True))
        self._directory = directory
        self.access_key, self.secret_key = "test-access", secrets.token_hex(16)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports['s3']}"

    def settings(self, prefix: str = "test") -> StoreSettings:
        """Settings for the buckets `<prefix>-...`, with the keys in files."""
        for name, value in (("access", self.access_key), ("secret", self.secret_key)):
            (self._directory / name).write_text(value + "\n")
        return StoreSettings(
            url=f"s3://{prefix}",
            endpoint=self.endpoint,
            access_key_file=self._directory / "access",
            secret_key_file=self._directory / "secret",
        )

    def environment(self) -> dict[str, str]:
        keys = {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}
        return {**os.environ, **keys, "GOMEMLIMIT": "512MiB", "TMPDIR": str(self._directory)}

    def command(self) -> list[str]:
        data = self._directory / "data"
        data.mkdir(exist_ok=True)
        ports = [f"-{name}.port={port}" for name, port in self.ports.items()]
        quiet = [
            "-admin.ui=false",
            "-webdav=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-master.telemetry=false",
        ]
        bind = [f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.preStopSeconds=0"]
        return [find_program("weed"), "-logtostderr=true", "mini", *bind, *ports, *quiet]

    def answers(self) -> bool:
        return _ok(f"{self.endpoint}/healthz")


def _ok(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
