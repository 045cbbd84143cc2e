"""How a finished segment travels to the writer process: a head as JSON, then the raw parts, each with its length.

Private to one pair of processes of the same version, over a pipe. Sizes are checked on both sides.
"""

import json
import struct
from typing import IO, Any, Final

_LENGTH: Final = struct.Struct("<I")
MAX_PART: Final = 64 * 1024 * 1024


def send(pipe: IO[bytes], head: dict[str, Any], parts: tuple[bytes | memoryview, ...]) -> None:
    """Write one message; blocks while the reader is busy, without holding the interpreter's lock."""
    sizes = [len(part) for part in parts]
    text = json.dumps({**head, "parts": sizes}).encode()
    pipe.write(_LENGTH.pack(len(text)) + text)
    for part in parts:
        pipe.write(part)
    pipe.flush()


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
