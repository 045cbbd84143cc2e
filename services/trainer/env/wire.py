"""How a finished segment travels to the writer process: a head as JSON, then the raw parts, each with its length.

Private to one pair of processes of the same version, over a pipe. Sizes are checked on both sides.
"""

import json
import os
import struct
from collections.abc import Sequence
from typing import IO, Any, Final

from services.trainer.env.buffers import Part

_LENGTH: Final = struct.Struct("<I")
MAX_PART: Final = 64 * 1024 * 1024
AT_ONCE: Final = 1024  # pieces of one system call; more than the kernel takes is an error


def send(pipe: IO[bytes], head: dict[str, Any], parts: Sequence[Part]) -> None:
    """Write one message, each part from its pieces without joining them.

    Blocks while the reader is busy, without holding the interpreter's lock: the games go on meanwhile.
    """
    sizes = [sum(map(len, part)) for part in parts]
    text = json.dumps({**head, "parts": sizes}).encode()
    pipe.flush()
    pieces: list[bytes | bytearray | memoryview] = [_LENGTH.pack(len(text)), text]
    for part in parts:
        pieces += part
    for first in range(0, len(pieces), AT_ONCE):
        _write_all(pipe.fileno(), pieces[first : first + AT_ONCE])


def _write_all(pipe: int, pieces: list[bytes | bytearray | memoryview]) -> None:
    while pieces:
        written = os.writev(pipe, pieces)
        done = 0
        while done < len(pieces) and written >= len(pieces[done]):
            written -= len(pieces[done])
            done += 1
        pieces = pieces[done:]
        if written:
            pieces[0] = memoryview(pieces[0])[written:]


def receive(pipe: IO[bytes]) -> tuple[dict[str, Any], list[bytes]] | None:
    """Read one message, or None at the end of the pipe."""
    raw = pipe.read(_LENGTH.size)
    if len(raw) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(raw)
    head: dict[str, Any] = json.loads(_exactly(pipe, length))
    parts = [_exactly(pipe, size) for size in head.pop("parts")]
    return head, parts


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    if size > MAX_PART:
        raise EOFError(f"a part of {size} bytes is larger than any segment")
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError(f"the pipe ended {size - len(data)} bytes early")
    return data
