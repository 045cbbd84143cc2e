"""The running writer process as the outbox sees it: places for segments, a pipe to it, a pipe back.

Neither pipe is ever waited for. A head has one or two thousand bytes and there are few places, so that all of them
fit into a pipe's 64 kB.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, Any, Final

import structlog

from services.trainer.env.tray import Part, Tray
from shared.runtime.settings import StoreSettings

WRITER: Final = "services.trainer.env.writer"
PLACES: Final = 12  # segments with the writer: it stores eight at a time, and the next ones lie ready

log = structlog.get_logger(__name__)


class Clerk:
    """One writer process, from its start to its end."""

    def __init__(self, store: StoreSettings) -> None:
        """Start it. `store` is where it creates the archives. Raises OSError if the system cannot."""
        self._tray = Tray()
        self._free = list(range(PLACES))
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", WRITER, str(self._tray.file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(self._tray.file,),
            )
        except OSError:
            self._tray.close()
            raise
        self._to, self._back = _pipe(self._process.stdin), _pipe(self._process.stdout)
        os.set_blocking(self._to, False)
        os.set_blocking(self._back, False)
        self._partial = b""
        self.alive = True
        self._tell({"store": store.model_dump(mode="json")})

    @property
    def free(self) -> bool:
        """Whether there is a place for another segment."""
        return self.alive and bool(self._free)

    @property
    def busy(self) -> int:
        """Segments that it was given and has not answered."""
        return PLACES - len(self._free)

    def send(self, facts: dict[str, Any], parts: Sequence[Part]) -> None:
        """Give it a segment; only while there is a `free` place. Whatever fails, it is not `alive` afterwards."""
        place = self._free.pop()
        try:
            sizes = self._tray.put(place, parts)
        except (OSError, ValueError) as error:
            log.warning("a segment does not get to the writer", segment=facts["segment"], error=str(error))
            self.alive = False
            return
        self._tell({**facts, "place": place, "sizes": sizes})

    def answers(self) -> Iterator[dict[str, Any]]:
        """What it has answered by now: for each segment whether it is stored."""
        *lines, self._partial = (self._partial + self._received()).split(b"\n")
        for line in lines:
            answer: dict[str, Any] = json.loads(line)
            self._free.append(answer.pop("place"))
            yield answer

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def close(self) -> None:
        """End it and give everything back. What it still held is lost."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._tray.close()

    def _tell(self, head: dict[str, Any]) -> None:
        line = json.dumps(head).encode() + b"\n"
        try:
            self.alive = os.write(self._to, line) == len(line) and self.alive
        except OSError:  # it has ended, or has not read for so long that it may as well have
            self.alive = False

    def _received(self) -> bytes:
        received = b""
        with suppress(BlockingIOError):
            while some := os.read(self._back, 65_536):
                received += some
            self.alive = False  # the end of its answers
        return received


def _pipe(stream: IO[bytes] | None) -> int:
    if stream is None:
        raise BrokenPipeError("the writer has no pipe")
    return stream.fileno()
