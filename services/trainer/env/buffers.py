"""Memory for segments being gathered, used again and again: fresh pages cost more than the copying itself."""

import threading
from typing import Final

import numpy as np
from numpy.typing import NDArray

from services.trainer.env.tray import Part
from shared.contracts.segment import KEY_FRAMES
from shared.game import ram
from shared.game.layout import SIZE
from shared.game.moment import OBJECTS, Still

PICTURE_SIZE: Final = 160 * 144 * 4


class SegmentBuffer:
    """One segment of steps + 1 moments with their observations, and its key frames.

    A moment is what decoding needs of its image: the objects are copied each time, what stands still is kept as the
    decoder's own bytes, and only when it changed. `turns` are the moments at which it did.
    """

    __slots__ = ("_features", "_frames", "_objects", "_pictures", "_shots", "_stills", "turns")

    def __init__(self) -> None:
        self._pictures = memoryview(bytearray(KEY_FRAMES * PICTURE_SIZE))
        self.empty()

    def empty(self) -> None:
        """Begin again."""
        self._shots = 0
        self._objects: list[bytes] = []
        self._frames = bytearray()
        self._features: list[NDArray[np.float32]] = []
        self._stills: list[Still] = []
        self.turns: list[int] = []

    def add_moment(self, image: bytes, still: Still, features: NDArray[np.float32]) -> None:
        """Append a moment: its RAM image, the decoder's still part of it, and the observation (kept, not copied)."""
        stills = self._stills
        if not stills or still is not stills[-1]:
            self.turns.append(len(self._frames))
            stills.append(still)
        self._objects.append(image[OBJECTS])
        self._frames.append(image[ram.FRAME_COUNTER])
        self._features.append(features)

    def add_picture(self, picture: memoryview) -> None:
        """Append one picture of packed RGBA pixels."""
        shot = self._shots
        self._pictures[shot * PICTURE_SIZE : (shot + 1) * PICTURE_SIZE] = picture
        self._shots = shot + 1

    def features(self) -> NDArray[np.float32]:
        """The observations, float32 (moments, 128)."""
        return np.array(self._features, np.float32).reshape(-1, SIZE)

    def parts(self) -> tuple[Part, ...]:
        """What was gathered, in pieces: objects, frame counters, turns (uint16), stills, observations, pictures."""
        return (
            self._objects,
            [self._frames],
            [np.array(self.turns, np.uint16).tobytes()],
            [piece for still in self._stills for piece in still],
            [features.data.cast("B") for features in self._features],
            [self._pictures[: self._shots * PICTURE_SIZE]],
        )


class BufferPool:
    """Lends buffers and takes them back; thread-safe. Never holds more than were needed at once."""

    def __init__(self) -> None:
        self._free: list[SegmentBuffer] = []
        self._lock = threading.Lock()

    def lend(self) -> SegmentBuffer:
        """An empty buffer."""
        with self._lock:
            return self._free.pop() if self._free else SegmentBuffer()

    def give_back(self, buffer: SegmentBuffer) -> None:
        """Take a buffer back; the giver must not touch it afterwards."""
        buffer.empty()
        with self._lock:
            self._free.append(buffer)
