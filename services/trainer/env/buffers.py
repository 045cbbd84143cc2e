"""Memory for segments being gathered, used again and again: fresh pages cost more than the copying itself."""

import threading
from typing import Final

from services.trainer.env.compact import COMPACT_SIZE
from shared.contracts.segment import KEY_FRAMES
from shared.game.layout import SIZE

FEATURES_SIZE: Final = SIZE * 4
PICTURE_SIZE: Final = 160 * 144 * 4


class SegmentBuffer:
    """Room for one segment of at most `steps` steps: steps + 1 images and observations, and the key frames."""

    __slots__ = ("features", "images", "moments", "pictures", "shots")

    def __init__(self, steps: int) -> None:
        self.images = memoryview(bytearray((steps + 1) * COMPACT_SIZE))
        self.features = memoryview(bytearray((steps + 1) * FEATURES_SIZE))
        self.pictures = memoryview(bytearray(KEY_FRAMES * PICTURE_SIZE))
        self.moments = self.shots = 0

    def add_moment(self, image: bytes, features: memoryview) -> None:
        """Append one compact image and one observation."""
        moment = self.moments
        self.images[moment * COMPACT_SIZE : (moment + 1) * COMPACT_SIZE] = image
        self.features[moment * FEATURES_SIZE : (moment + 1) * FEATURES_SIZE] = features
        self.moments = moment + 1

    def add_picture(self, picture: memoryview) -> None:
        """Append one picture of packed RGBA pixels."""
        shot = self.shots
        self.pictures[shot * PICTURE_SIZE : (shot + 1) * PICTURE_SIZE] = picture
        self.shots = shot + 1

    def parts(self) -> tuple[memoryview, memoryview, memoryview]:
        """The used parts: images, features, pictures."""
        return (
            self.images[: self.moments * COMPACT_SIZE],
            self.features[: self.moments * FEATURES_SIZE],
            self.pictures[: self.shots * PICTURE_SIZE],
        )


class BufferPool:
    """Lends buffers of one size and takes them back; thread-safe. Never holds more than were needed at once."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._free: list[SegmentBuffer] = []
        self._lock = threading.Lock()

    def lend(self) -> SegmentBuffer:
        """An empty buffer."""
        with self._lock:
            buffer = self._free.pop() if self._free else SegmentBuffer(self._steps)
        buffer.moments = buffer.shots = 0
        return buffer

    def give_back(self, buffer: SegmentBuffer) -> None:
        """Take a buffer back; the giver must not touch it afterwards."""
        with self._lock:
            self._free.append(buffer)
