"""Memory that the games share with the writer process. A segment is gathered in a place of it and read from there, so
that finishing one moves no bulk: the pipe to the writer carries one line a segment (its head).

What has a known size lies at fixed offsets of the place, the rest (its tail) after it.
"""

import mmap
import os
import weakref
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.contracts.segment import KEY_FRAMES
from shared.game.layout import SIZE
from shared.game.moment import OBJECTS_SIZE, STILL_SIZE
from shared.game.table import IMAGE_SIZE

PICTURE: Final = (144, 160)  # pixels, down and across
PICTURE_SIZE: Final = 4 * PICTURE[0] * PICTURE[1]  # bytes; packed RGBA
OBSERVATION_SIZE: Final = SIZE * 4  # bytes; float32
TAIL: Final = 64 * 1024 * 1024  # bytes between two places, beside their fixed parts; only what is written takes memory


def _pages(size: int) -> int:
    """Rounded up to whole pages."""
    return -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY


class Layout:
    """Where a place for segments of at most `steps` steps has what; offsets in bytes, pictures first."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    @cached_property
    def ram(self) -> int:
        """All RAM at the start and at the end."""
        return KEY_FRAMES * PICTURE_SIZE

    @cached_property
    def moments(self) -> int:
        """What moves at each moment, one after the other: not all have the same size."""
        return self.ram + _pages(2 * IMAGE_SIZE)

    @cached_property
    def observations(self) -> int:
        """The observation of each moment."""
        return self.moments + _pages((self.steps + 1) * OBJECTS_SIZE)

    @cached_property
    def stills(self) -> int:
        """What stands still, each time that it changed."""
        return self.observations + (self.steps + 1) * OBSERVATION_SIZE

    @cached_property
    def size(self) -> int:
        """The fixed part of a place, in whole pages."""
        return _pages(self.stills + (self.steps + 1) * STILL_SIZE)

    def features(self, memory: mmap.mmap, moments: int) -> NDArray[np.float32]:
        """The observations of the first moments, float32 (moments, 128); a view of the place's `memory`."""
        return np.ndarray((moments, SIZE), np.float32, memory, self.observations)


class Tray:
    """The shared memory. The games own it; the writer opens it by the inherited descriptor."""

    def __init__(self, layout: Layout, file: int | None = None) -> None:
        """`file` is the other process's descriptor; without it new memory is made. Raises OSError."""
        self.layout = layout
        self.file = os.memfd_create("segments") if file is None else file
        self._opened: dict[int, mmap.mmap] = {}
        self._end = weakref.finalize(self, os.close, self.file)

    def reserve(self, place: int) -> None:
        """Take memory for the fixed part of a new place. Raises OSError if the system has no more."""
        os.posix_fallocate(self.file, self._start(place), self.layout.size)

    def open(self, place: int) -> mmap.mmap:
        """The fixed part of a place, as it is in both processes."""
        if place not in self._opened:
            self._opened[place] = self._map(self._start(place), self.layout.size)
        return self._opened[place]

    def open_observations(self, place: int) -> mmap.mmap:
        """Its observations alone: a second place to append to."""
        size = (self.layout.steps + 1) * OBSERVATION_SIZE
        return self._map(self._start(place) + self.layout.observations, size)

    def _map(self, start: int, size: int) -> mmap.mmap:
        flags = mmap.MAP_SHARED | mmap.MAP_POPULATE  # all pages at once: not one by one while a game is played
        return mmap.mmap(self.file, size, flags=flags, offset=start)

    def put_tail(self, place: int, parts: Sequence[bytes]) -> list[int]:
        """Write the parts of unknown size; their sizes. ValueError for more than `TAIL`, OSError as `reserve`."""
        tail = b"".join(parts)
        if len(tail) > TAIL:
            raise ValueError(f"the tail of a segment has {len(tail)} bytes, more than {TAIL}")
        written, start = 0, self._start(place) + self.layout.size
        while written < len(tail):
            written += os.pwrite(self.file, tail[written:], start + written)
        return [len(part) for part in parts]

    def tail(self, place: int, sizes: Sequence[int]) -> list[bytes]:
        """The parts that were written there."""
        offset, parts = self._start(place) + self.layout.size, []
        for size in sizes:
            part = os.pread(self.file, size, offset)
            if len(part) != size:
                raise EOFError(f"place {place} holds {len(part)} of {size} bytes")
            parts.append(part)
            offset += size
        return parts

    def close(self) -> None:
        """Give the memory back: at once what is not in use, the rest when its user lets go of it."""
        self._opened.clear()
        self._end()

    def _start(self, place: int) -> int:
        return place * (self.layout.size + TAIL)
