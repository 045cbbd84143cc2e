"""Where segments wait for the writer process: each in a place of the tray (see tray.py), used again and again."""

import threading
from collections.abc import Sequence
from typing import Final

import structlog

from services.trainer.env.tray import PICTURE_SIZE, Buffer, Tray

log = structlog.get_logger(__name__)


class SegmentBuffer:
    """One segment in shared memory: its pictures as they are drawn, the rest when it is complete."""

    __slots__ = ("_pictures", "_shots", "_tray", "place", "sizes")

    def __init__(self, tray: Tray, place: int) -> None:
        """Take a new place. Raises OSError if the system has no more memory."""
        tray.reserve(place)
        self._tray: Final = tray
        self.place: Final = place
        self._pictures = memoryview(tray.open(place))
        self.empty()

    def empty(self) -> None:
        """Begin again."""
        self._shots = 0
        self.sizes: list[int] = []  # bytes of each part

    def add_picture(self, picture: memoryview) -> None:
        """Append one picture of packed RGBA pixels."""
        shot = self._shots
        self._pictures[shot * PICTURE_SIZE : (shot + 1) * PICTURE_SIZE] = picture
        self._shots = shot + 1

    def complete(self, parts: Sequence[Buffer]) -> None:
        """All but the pictures. Raises OSError if the system has no more memory."""
        self.sizes = self._tray.put_tail(self.place, parts)


class BufferPool:
    """Lends buffers and takes them back; thread-safe. Never holds more than were needed at once."""

    def __init__(self) -> None:
        """Raises OSError if the system shares no memory."""
        self.tray = Tray()
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
