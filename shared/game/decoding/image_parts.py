"""The bytes of a RAM image that decoding needs, in two groups: static parts, unchanged in most steps, and dynamic ones.

The dynamic bytes are the pages of objects, up to the last page in use: most rooms use three of sixteen. The first
`VOLATILE` static parts change most often: a wall that is pushed against, a text.

Decoder and recorder share these lists; a byte that is in neither must not be decoded.
"""

from io import BytesIO
from operator import itemgetter
from typing import Final

from shared.game.decoding.objects import ENABLED, PAGE, PAGES, PAGES_END
from shared.game.ram import offsets
from shared.game.ram.table import IMAGE_SIZE

ImageParts = tuple[bytes, ...]

_VOLATILE: Final = (
    slice(offsets.PUSH_COUNTER, offsets.PUSH_COUNTER + 1),
    slice(offsets.TEXT_LINE, offsets.TEXT_LINE + 16),
    slice(offsets.TEXT_PRINT_STATE, offsets.TEXT_PRINT_STATE + 1),
    slice(offsets.TEXT_ACTIVE, offsets.MENU_TYPE + 1),
    slice(offsets.DISABLED_OBJECTS, offsets.OPEN_SHUTTERS + 1),
    slice(offsets.SOUND_QUEUE, offsets.SOUND_QUEUE + 16),
    slice(offsets.SOUND_QUEUE_TAIL, offsets.SOUND_QUEUE_TAIL + 1),
)
_STATIC: Final = (
    *_VOLATILE,
    slice(offsets.GAME_STATE, offsets.CUTSCENE_INDEX + 1),
    slice(offsets.PALETTE_FADE_MODE, offsets.PALETTE_FADE_MODE + 1),
    slice(offsets.DEATHS, offsets.DEATHS + 4),
    slice(offsets.RUPEES_COLLECTED, offsets.RUPEES_COLLECTED + 2),
    slice(offsets.SMALL_KEYS, offsets.ROOM_FLAGS_OVERWORLD + 0x400),  # items, keys, room flags
    slice(offsets.NUM_ENEMIES, offsets.LINK_DEATH_TRIGGER + 1),
    slice(offsets.LINK_OBJECT_INDEX, offsets.DUNGEON_FLOOR + 1),  # room, season, dungeon
    slice(offsets.LINK_GRAB_STATE, offsets.LINK_SWIMMING + 1),
    slice(offsets.ACTIVE_TRIGGERS, offsets.ACTIVE_TRIGGERS + 1),
    slice(offsets.TALKABLE_LIST, offsets.TALKABLE_LIST + 32),
    slice(offsets.SCROLL_MODE, offsets.ROOM_HEIGHT_8PX + 1),
    slice(offsets.ROOM_COLLISIONS, offsets.ROOM_LAYOUT + 176),
    slice(offsets.PUSHED_OBJECT_ENABLED, offsets.PUSHED_OBJECT_ID + 1),
    slice(offsets.DUNGEON_LAYOUT, offsets.DUNGEON_LAYOUT + 256),
    slice(offsets.TEXT_OPTION_CURSOR, offsets.TEXT_OPTION_CURSOR + 1),
    *ENABLED,  # which objects there are
)
_SIZES: Final = tuple(len(range(*part.indices(IMAGE_SIZE))) for part in _STATIC)
VOLATILE: Final = len(_VOLATILE)  # parts
VOLATILE_SIZE: Final = sum(_SIZES[:VOLATILE])
STATIC_SIZE: Final = sum(_SIZES[VOLATILE:])
static_parts: Final = itemgetter(*_STATIC)  # one call, because it is made each step

_ALWAYS: Final = 2  # pages: the hero is in the first, the animal that he rides in the second


def enabled_of(static: ImageParts) -> ImageParts:
    """Which slots of people, enemies and parts are in use: one byte per slot, 0 for a free one."""
    return static[-len(ENABLED) :]


def dynamic_range(static: ImageParts) -> slice:
    """Where in the image the dynamic bytes lie: all pages of objects up to the last one in use."""
    pages = max(_ALWAYS, *(len(column.rstrip(b"\0")) for column in enabled_of(static)))
    return slice(PAGES, PAGES + pages * PAGE)


class RamImageRebuilder:
    """Rebuilds images from recorded parts: zeros but for the bytes that decoding needs, so they decode the same."""

    def __init__(self) -> None:
        self._image = bytearray(IMAGE_SIZE)
        self._dynamic = slice(PAGES, PAGES + _ALWAYS * PAGE)

    def set_volatile(self, parts: bytes) -> None:
        """Set the volatile parts of all following images, `VOLATILE_SIZE` bytes."""
        self._write(parts, 0, VOLATILE)

    def set_static(self, parts: bytes) -> None:
        """Set the other static parts of all following images, `STATIC_SIZE` bytes."""
        self._image[PAGES:PAGES_END] = bytes(PAGES_END - PAGES)
        self._dynamic = dynamic_range(self._write(parts, VOLATILE, len(_STATIC)))

    def _write(self, content: bytes, first: int, after: int) -> ImageParts:
        """Write the parts from `first` to before `after`, joined in `content`."""
        sizes = _SIZES[first:after]
        if len(content) != sum(sizes):
            raise ValueError(f"these parts of an image have {sum(sizes)} bytes, not {len(content)}")
        parts = tuple(map(BytesIO(content).read, sizes))
        for place, part in zip(_STATIC[first:after], parts, strict=True):
            self._image[place] = part
        return parts

    @property
    def size(self) -> int:
        """Number of dynamic bytes of the next image."""
        return self._dynamic.stop - self._dynamic.start

    def image(self, dynamic: bytes) -> bytes:
        """The image with these dynamic bytes, `size` of them."""
        if len(dynamic) != self.size:
            raise ValueError(f"the objects of this image have {self.size} bytes, not {len(dynamic)}")
        self._image[self._dynamic] = dynamic
        return bytes(self._image)
