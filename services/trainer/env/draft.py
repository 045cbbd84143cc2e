"""What of a segment comes with every step, gathered in memory of our own."""

from array import array
from io import BytesIO
from typing import Final

import numpy as np
from numpy.typing import NDArray

from services.trainer.env.tray import Buffer
from shared.game.decoding.image_parts import VOLATILE, ImageParts
from shared.game.observation.layout import SIZE


class Draft:
    """The moments of one segment, and all RAM at both ends.

    A moment is what decoding needs of its image (see moment.py), and its observation. For each, `moved` is given what
    moves and `seen` the observation, as bytes; before it, what stands still goes to `turn`, but only when it changed.
    Of that, most is kept only when more changed than its busy part.

    An environment has one draft for all its segments: memory that was written lately is the quickest to write again.
    """

    def __init__(self) -> None:
        self._moved, self._seen, self._busy, self._quiet = BytesIO(), BytesIO(), BytesIO(), BytesIO()
        # Called each step: the quickest way to append to memory that is there already.
        self.moved: Final = self._moved.write
        self.seen: Final = self._seen.write
        self.empty()

    def empty(self) -> None:
        """Begin again."""
        self._ram: list[bytes] = []
        # Where in `_moved` the moments are before which something turned, and more than what is busy.
        self._turns, self._changes = array("I"), array("I")
        self._last_quiet: ImageParts = ()
        for stream in (self._moved, self._seen, self._busy, self._quiet):
            stream.seek(0)

    def turn(self, still: ImageParts) -> None:
        """From the coming moment on, this stands still: the decoder's own bytes."""
        place, quiet = self._moved.tell(), still[VOLATILE:]
        self._turns.append(place)
        self._busy.write(b"".join(still[:VOLATILE]))
        if quiet != self._last_quiet:
            self._last_quiet = quiet
            self._changes.append(place)
            self._quiet.write(b"".join(quiet))

    def add_ram(self, image: bytes) -> None:
        """Keep all RAM of this very moment: first at the start, then at the end of the segment."""
        self._ram.append(image)

    def features(self) -> NDArray[np.float32]:
        """The observations, float32 (moments, 128)."""
        return np.frombuffer(bytes(_written(self._seen)), np.float32).reshape(-1, SIZE)

    def parts(self) -> tuple[Buffer, ...]:
        """RAM at the start and at the end, what moved, what turned (busy, quiet; where, as uint32), observations.

        Let go of them before anything else is gathered here.
        """
        turned = _written(self._busy), _written(self._quiet), self._turns.tobytes(), self._changes.tobytes()
        return *self._ram, _written(self._moved), *turned, _written(self._seen)


def _written(stream: BytesIO) -> memoryview:
    """Without what is left there of a longer segment."""
    return stream.getbuffer()[: stream.tell()]
