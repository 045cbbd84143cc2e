"""What of a segment comes with every step, gathered in memory of our own."""

from array import array
from io import BytesIO
from typing import Final

import numpy as np
from numpy.typing import NDArray

from services.trainer.env.tray import Buffer
from shared.game.layout import SIZE
from shared.game.moment import Still


class Draft:
    """The moments of one segment, and all RAM at both ends.

    A moment is what decoding needs of its image (see moment.py), and its observation. For each, `moved` is given what
    moves and `seen` the observation, as bytes; before it, what stands still goes to `turn`, but only when it changed.

    An environment has one draft for all its segments: memory that was written lately is the quickest to write again.
    """

    def __init__(self) -> None:
        self._moved, self._seen, self._still = BytesIO(), BytesIO(), BytesIO()
        # Called each step: the quickest way to append to memory that is there already.
        self.moved: Final = self._moved.write
        self.seen: Final = self._seen.write
        self.empty()

    def empty(self) -> None:
        """Begin again."""
        self._ram: list[bytes] = []
        self._turns = array("I")  # where in `_moved` those moments are
        for stream in (self._moved, self._seen, self._still):
            stream.seek(0)

    def turn(self, still: Still) -> None:
        """From the coming moment on, this stands still: the decoder's own bytes."""
        self._turns.append(self._moved.tell())
        self._still.write(b"".join(still))

    def add_ram(self, image: bytes) -> None:
        """Keep all RAM of this very moment: first at the start, then at the end of the segment."""
        self._ram.append(image)

    def features(self) -> NDArray[np.float32]:
        """The observations, float32 (moments, 128)."""
        return np.frombuffer(bytes(_written(self._seen)), np.float32).reshape(-1, SIZE)

    def parts(self) -> tuple[Buffer, ...]:
        """RAM at the start and at the end, what moved, what stood still, turns (uint32), observations (float32).

        Let go of them before anything else is gathered here.
        """
        moved, still, seen = _written(self._moved), _written(self._still), _written(self._seen)
        return *self._ram, moved, still, self._turns.tobytes(), seen


def _written(stream: BytesIO) -> memoryview:
    """Without what is left there of a longer segment."""
    return stream.getbuffer()[: stream.tell()]
