"""The part of a RAM image that decoding needs: 10 kB instead of 33, because 300 of them make a segment."""

from typing import Final

from shared.game import ram
from shared.game.table import BANK_SIZE, HRAM_SIZE, IMAGE_SIZE, WRAM_SIZE

_PARTS: Final = (
    slice(0, 2 * BANK_SIZE),  # fixed bank and bank 1, the objects
    slice(ram.DUNGEON_LAYOUT, ram.DUNGEON_LAYOUT + 256),
    slice(ram.TEXT_PRINT_STATE, ram.TEXT_LINE + 16),
    slice(WRAM_SIZE, WRAM_SIZE + HRAM_SIZE),
)
_A, _B, _C, _D = _PARTS
COMPACT_SIZE: Final = sum(part.stop - part.start for part in _PARTS)


def compact(image: bytes) -> bytes:
    """The needed parts of an image."""
    return image[_A] + image[_B] + image[_C] + image[_D]


def expand(parts: bytes) -> bytes:
    """An image with these parts and zeros elsewhere; it decodes to the same state."""
    if len(parts) != COMPACT_SIZE:
        raise ValueError(f"a compact image has {COMPACT_SIZE} bytes, not {len(parts)}")
    image = bytearray(IMAGE_SIZE)
    place = 0
    for part in _PARTS:
        size = part.stop - part.start
        image[part] = parts[place : place + size]
        place += size
    return bytes(image)
