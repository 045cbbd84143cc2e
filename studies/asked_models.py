"""The models that a guided trial asks: those of a planner file, or the rules server, which plans by rules."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from services.trainer.settings import DriverGroup
from studies.arms import Arm

START_S: Final = 60.0
POLL_S: Final = 0.1


@contextmanager
def asked_models(arm: Arm, file: str | None) -> Iterator[DriverGroup]:
    """The driver's settings for this arm. Without a planner file, a rules server runs as long as the arm needs one.

    Raises ValidationError if the file is wrong.
    """
    if not arm.guidance:
        yield DriverGroup()
    elif file is not None:
        yield DriverGroup(planner_file=Path(file))
    else:
        with rules_server() as url:
            yield DriverGroup(planner_url=url)


@contextmanager
def rules_server(*options: str) -> Iterator[str]:
    """A rules server in a process of its own; its address. `options` are those of its command line."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "services.judge.rules_server", "--port", str(port), *options]
    process = subprocess.Popen(command)  # noqa: S603  # our own module
    try:
        _wait_until_it_answers(process, port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def _wait_until_it_answers(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(POLL_S)
    raise RuntimeError(f"the rules server does not answer at port {port} (exit code {process.poll()})")
