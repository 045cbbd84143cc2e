"""Where segments are gathered: each in a place of the tray (see tray.py), used again and again."""

import threading
from array import array
from typing import Final

import numpy as np
import structlog
from numpy.typing import NDArray

from services.trainer.env.tray import OBSERVATION_SIZE, PICTURE_SIZE, Layout, Tray
from shared.game.moment import STILL_SIZE, Still
from shared.game.table import IMAGE_SIZE

log = structlog.get_logger(__name__)


class SegmentBuffer:
    """One segment of steps + 1 moments, its key frames, and all RAM at both ends.

    A moment is what decoding needs of its image (see moment.py), and its observation. For each, `moved` is given what
    moves and `seen` the observation, as bytes; before it, what stands still goes to `turn`, but only when it changed.
    Both append to shared memory as if it were a file, which is the quickest way.
    """

    __slots__ = ("_layout", "_memory", "_observations", "_shots", "_view", "moved", "place", "seen", "turns")

    def __init__(self, tray: Tray, place: int) -> None:
        """Take a new place. Raises OSError if the system has no more memory."""
        tray.reserve(place)
        self.place: Final = place
        self._layout, self._memory = tray.layout, tray.open(place)
        self._view = memoryview(self._memory)
        self._observations = tray.open_observations(place)
        self.moved: Final = self._memory.write
        self.seen: Final = self._observations.write
        self.empty()

    def empty(self) -> None:
        """Begin again."""
        self._shots = 0
        self.turns = array("I")  # where in the place those moments are
        self._memory.seek(self._layout.moments)
        self._observations.seek(0)

    def turn(self, still: Still) -> None:
        """From the coming moment on, this stands still: the decoder's own bytes."""
        begin = self._layout.stills + len(self.turns) * STILL_SIZE
        self._view[begin : begin + STILL_SIZE] = b"".join(still)
        self.turns.append(self._memory.tell())

    def add_picture(self, picture: memoryview) -> None:
        """Append one picture of packed RGBA pixels."""
        shot = self._shots
        self._view[shot * PICTURE_SIZE : (shot + 1) * PICTURE_SIZE] = picture
        self._shots = shot + 1

    def put_ram(self, image: bytes, end: bool) -> None:
        """Keep all RAM of this very moment, at the start or at the `end` of the segment."""
        begin = self._layout.ram + end * IMAGE_SIZE
        self._view[begin : begin + IMAGE_SIZE] = image

    def features(self) -> NDArray[np.float32]:
        """The observations, float32 (moments, 128); a view that is valid until the buffer is given back."""
        return self._layout.features(self._memory, self._observations.tell() // OBSERVATION_SIZE)


class BufferPool:
    """Lends buffers and takes them back; thread-safe. Never holds more than were needed at once."""

    def __init__(self, steps: int) -> None:
        """For segments of at most `steps` steps. Raises OSError if the system shares no memory."""
        self.tray = Tray(Layout(steps))
        self._free: list[SegmentBuffer] = []
        self._made = 0
        self._closed = False
        self._lock = threading.Lock()

    def lend(self) -> SegmentBuffer | None:
        """An empty buffer, or None if the system has no more memory, or the pool is closed."""
        with self._lock:
            if self._closed:
                return None
            if self._free:
                return self._free.pop()
            try:
                buffer = SegmentBuffer(self.tray, self._made)
            except OSError as error:
                log.warning("no memory for another segment", segments=self._made, error=str(error))
                return None
            self._made += 1
            return buffer

    def give_back(self, buffer: SegmentBuffer) -> None:
        """Take a buffer back; the giver must not touch it afterwards."""
        buffer.empty()
        with self._lock:
            self._free.append(buffer)

    def close(self) -> None:
        """Give the memory back. Nothing is lent afterwards."""
        with self._lock:
            self._closed = True
            self._free.clear()
            self.tray.close()
