"""Writes game pictures as palette PNG: small, exact, without an imaging library.

The screen has at most 32,768 colours (5 bits a channel) and in practice a few dozen, so every picture fits a palette
of 256. More colours, which no game shows, are refused.
"""

import struct
import zlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
LEVEL: Final = 3  # of zlib: level 6 takes twice as long for a sixth less
MAX_COLOURS: Final = 256
CONSOLE_COLOURS: Final = 1 << 15


def palette_png(picture: NDArray[np.uint32], scale: int = 1) -> bytes:
    """PNG of packed RGBA pixels, uint32 (height, width) as `Emulator.raw_screen` gives; `scale` is a whole number."""
    plane, colours = _indexed(picture & np.uint32(0x00FFFFFF))
    if len(colours) > MAX_COLOURS:
        raise ValueError(f"a picture with {len(colours)} colours does not fit a palette of {MAX_COLOURS}")
    plane = plane.astype(np.uint8)
    if scale > 1:
        plane = plane.repeat(scale, 0).repeat(scale, 1)
    height, width = plane.shape
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with a filter byte: 0, none
    rows[:, 1:] = plane
    palette = colours.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3]
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return b"".join(
        (
            SIGNATURE,
            _chunk(b"IHDR", head),
            _chunk(b"PLTE", palette.tobytes()),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), LEVEL)),
            _chunk(b"IEND", b""),
        )
    )


def _indexed(pixels: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.uint32]]:
    """The sorted colours of `pixels` (height, width), and the index of each pixel's colour.

    The console has 5 bits a channel, so a table of all its colours replaces a sort: a third of the time.
    """
    colour = (pixels >> 3) & 0x1F | (pixels >> 6) & 0x3E0 | (pixels >> 9) & 0x7C00
    by_colour = np.zeros(CONSOLE_COLOURS, np.uint32)
    by_colour[colour] = pixels
    if not np.array_equal(by_colour[colour], pixels):  # finer colours than the console's
        colours, flat = np.unique(pixels, return_inverse=True)
        return flat.reshape(pixels.shape), colours
    seen = np.zeros(CONSOLE_COLOURS, np.bool_)
    seen[colour] = True
    places = np.flatnonzero(seen)
    index = np.zeros(CONSOLE_COLOURS, np.intp)
    index[places] = np.arange(len(places))
    return index[colour], by_colour[places]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
