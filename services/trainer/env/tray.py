"""How finished segments travel to the writer process: through memory that both share, each in one of a few places.

A pipe would wake the two processes some thirty times a segment, and where several virtual machines share a processor
that alone costs the games several per cent. So the pipe carries one line a segment (its head), and the bulk lies here.
"""

import os
from collections.abc import Sequence
from typing import Final

Part = Sequence[bytes | bytearray | memoryview]

PLACE: Final = 64 * 1024 * 1024  # bytes between two places; memory is only taken for what is written
AT_ONCE: Final = 1024  # pieces of one system call; more than the kernel takes is an error


class Tray:
    """Shared memory, cut into places. The giver keeps account of which are free."""

    def __init__(self, file: int | None = None) -> None:
        """`file` is the other process's descriptor, inherited; without it new memory is made."""
        self.file = os.memfd_create("segments") if file is None else file

    def put(self, place: int, parts: Sequence[Part]) -> list[int]:
        """Lay down the parts, each from its pieces without joining them; their sizes in bytes.

        Raises ValueError for a segment that is larger than a place.
        """
        sizes = [sum(map(len, part)) for part in parts]
        if sum(sizes) > PLACE:
            raise ValueError(f"a segment of {sum(sizes)} bytes is larger than the {PLACE} that a place has")
        pieces = [piece for part in parts for piece in part]
        offset = place * PLACE
        for first in range(0, len(pieces), AT_ONCE):
            offset = self._write(pieces[first : first + AT_ONCE], offset)
        return sizes

    def _write(self, pieces: list[bytes | bytearray | memoryview], offset: int) -> int:
        """Write the pieces one after the other; where they end."""
        end = offset + sum(map(len, pieces))
        written = os.pwritev(self.file, pieces, offset)
        if offset + written < end:  # the kernel may stop early; the rest is rare enough to be joined
            rest = b"".join(pieces)[written:]
            while rest:
                rest = rest[os.pwrite(self.file, rest, end - len(rest)) :]
        return end

    def take(self, place: int, sizes: Sequence[int]) -> list[bytes]:
        """The parts that were put there."""
        offset, parts = place * PLACE, []
        for size in sizes:
            part = os.pread(self.file, size, offset)
            if len(part) != size:
                raise EOFError(f"place {place} holds {len(part)} of {size} bytes")
            parts.append(part)
            offset += size
        return parts

    def close(self) -> None:
        """Give the memory back."""
        os.close(self.file)
