"""Memory that the games share with the writer process: finishing a segment moves little, and the pipe to the writer
carries one line a segment (its head).

A segment has a place of it. Its pictures go straight there; the rest (its tail) is written after them when the segment
is complete, and never if it is not chosen.
"""

import errno
import mmap
import os
import weakref
from collections.abc import Iterator, Sequence
from typing import Final

from shared.contracts.segment import KEY_FRAMES

PICTURE: Final = (144, 160)  # pixels, down and across
PICTURE_SIZE: Final = 4 * PICTURE[0] * PICTURE[1]  # bytes; packed RGBA
PICTURES_SIZE: Final = KEY_FRAMES * PICTURE_SIZE
PLACE_SIZE: Final = 1 << 30  # bytes from one place to the next; only what is written takes memory

Buffer = bytes | memoryview


class Tray:
    """The shared memory. The games own it; the writer opens it by the inherited descriptor."""

    def __init__(self, file: int | None = None) -> None:
        """`file` is the other process's descriptor; without it new memory is made. Raises OSError."""
        self.file = os.memfd_create("segments") if file is None else file
        self._opened: dict[int, mmap.mmap] = {}
        self._end = weakref.finalize(self, os.close, self.file)

    def reserve(self, place: int) -> None:
        """Take memory for the pictures of a new place. Raises OSError if the system has no more."""
        os.posix_fallocate(self.file, place * PLACE_SIZE, PICTURES_SIZE)

    def open(self, place: int) -> mmap.mmap:
        """The pictures of a place, as they are in both processes."""
        if place not in self._opened:
            flags = mmap.MAP_SHARED | mmap.MAP_POPULATE  # all pages at once: not one by one while a game is played
            self._opened[place] = mmap.mmap(self.file, PICTURES_SIZE, flags=flags, offset=place * PLACE_SIZE)
        return self._opened[place]

    def put_tail(self, place: int, parts: Sequence[Buffer]) -> list[int]:
        """Write all but the pictures; the size of each part. Raises OSError if the system has no more memory."""
        sizes = [len(part) for part in parts]
        if os.pwritev(self.file, parts, place * PLACE_SIZE + PICTURES_SIZE) != sum(sizes):
            raise OSError(errno.ENOSPC, f"no memory for the {sum(sizes)} bytes of a segment")
        return sizes

    def tail(self, place: int, sizes: Sequence[int]) -> Iterator[bytes]:
        """The parts that were written there. EOFError if they are not."""
        offset = place * PLACE_SIZE + PICTURES_SIZE
        for size in sizes:
            part = os.pread(self.file, size, offset)
            if len(part) != size:
                raise EOFError(f"place {place} holds {len(part)} of {size} bytes")
            yield part
            offset += size

    def close(self) -> None:
        """Give the memory back: at once what is not in use, the rest when its user lets go of it."""
        self._opened.clear()
        self._end()
