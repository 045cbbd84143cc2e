"""The running writer process as the outbox sees it: a pipe to it, a pipe back, and how much it may hold.

Neither pipe is ever waited for. A head has one or two thousand bytes and the writer holds few segments, so that all
of their heads fit into a pipe's 64 kB.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, Final

from pydantic_core import to_json

from services.trainer.env.buffers import SegmentBuffer
from services.trainer.env.tray import Tray
from shared.config.settings import StoreSettings

WRITER: Final = "services.trainer.env.writer"
IDLE: Final = "--idle"
MOST: Final = 12  # segments with the writer: it stores eight at a time, and the next ones lie ready


class Clerk:
    """One writer process, from its start to its end."""

    def __init__(self, store: StoreSettings, tray: Tray, idle: bool) -> None:
        """Start it. `store` is where it creates the archives of what is in `tray`. Raises OSError if it cannot.

        With `idle` it runs only when a core has nothing else to do.
        """
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", WRITER, str(tray.file), *([IDLE] if idle else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(tray.file,),
        )
        self._to, self._back = _pipe(self._process.stdin), _pipe(self._process.stdout)
        os.set_blocking(self._to, False)
        os.set_blocking(self._back, False)
        self._partial = b""
        self.alive = True
        self._tell({"store": store.model_dump(mode="json")})

    def send(self, facts: dict[str, Any], buffer: SegmentBuffer) -> None:
        """Give it a segment. If that fails, it is not `alive` afterwards."""
        self._tell({**facts, "place": buffer.place, "sizes": buffer.sizes})

    def answers(self) -> Iterator[dict[str, Any]]:
        """What it has answered by now: for each segment whether it is stored."""
        *lines, self._partial = (self._partial + self._received()).split(b"\n")
        for line in lines:
            yield json.loads(line)

    def kill(self) -> None:
        """End it, whatever it still holds. `close` waits for that: an idle process dies no sooner than it may run."""
        self._process.kill()

    def close(self) -> None:
        """End it and clear up."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _tell(self, head: dict[str, Any]) -> None:
        line = to_json(head) + b"\n"
        try:
            self.alive = os.write(self._to, line) == len(line) and self.alive
        except OSError:  # it has ended, or has not read for so long that it may as well have
            self.alive = False

    def _received(self) -> bytes:
        try:
            received = os.read(self._back, 65_536)
        except BlockingIOError:
            return b""
        self.alive = self.alive and received != b""  # nothing is the end of its answers
        return received


def _pipe(stream: IO[bytes] | None) -> int:
    if stream is None:
        raise BrokenPipeError("the writer has no pipe")
    return stream.fileno()
