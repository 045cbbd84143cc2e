"""Encodes pictures as an animated GIF, which pages show where they play no video."""

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from services.exporter.adapters.strips import Strips, enlarged
from services.exporter.adapters.video import WIDTH
from shared.errors import Permanent

COLOURS: Final = 32  # a Game Boy Color shows 56, most rooms of Bramble fewer than 20
MAX_PICTURES: Final = 2_000  # they are all in memory: 100 kB each


def encode_gif(
    pictures: Iterable[NDArray[np.uint8]], *, picture_ms: int, scale: int = 2, notes: Sequence[str] = ()
) -> bytes:
    """Return a GIF that repeats without end. `pictures` are uint8 arrays of shape (144, 160, 3), RGB, at least one.

    `notes` has a text for every picture, shown below it, or is empty. Permanent for more than MAX_PICTURES.
    """
    first, *rest = _drawn(pictures, Strips((), notes, WIDTH * scale), scale)
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=rest, duration=picture_ms, loop=0, optimize=True)
    return file.getvalue()


def _drawn(pictures: Iterable[NDArray[np.uint8]], strips: Strips, scale: int) -> Iterator[Image.Image]:
    for number, picture in enumerate(pictures):
        if number == MAX_PICTURES:
            raise Permanent(f"a GIF of more than {MAX_PICTURES:,} pictures needs too much memory: raise --speed")
        whole = strips.below(enlarged(picture, scale), number)
        yield Image.fromarray(whole).quantize(COLOURS, dither=Image.Dither.NONE)
