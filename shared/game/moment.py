"""The bytes of a RAM image that decoding needs, in two parts: what stands still while the hero walks about, and what
moves. Of the objects that is only as much as is in use: most rooms use three of their sixteen pages.

What stands still begins with the little that turns most often (`busy`): a wall that is pushed against, a text.

Everything that decodes or records images shares this list; a byte that is not in it must not be decoded.
"""

from io import BytesIO
from operator import itemgetter
from typing import Final

from shared.game import ram
from shared.game.objects import ENABLED, PAGE, PAGES, PAGES_END
from shared.game.table import IMAGE_SIZE

Still = tuple[bytes, ...]

_BUSY: Final = (
    slice(ram.PUSH_COUNTER, ram.PUSH_COUNTER + 1),
    slice(ram.TEXT_LINE, ram.TEXT_LINE + 16),
    slice(ram.TEXT_PRINT_STATE, ram.TEXT_PRINT_STATE + 1),
    slice(ram.TEXT_ACTIVE, ram.MENU_TYPE + 1),
    slice(ram.DISABLED_OBJECTS, ram.OPEN_SHUTTERS + 1),
    slice(ram.SOUND_QUEUE, ram.SOUND_QUEUE + 16),
    slice(ram.SOUND_QUEUE_TAIL, ram.SOUND_QUEUE_TAIL + 1),
)
_STILL: Final = (
    *_BUSY,
    slice(ram.GAME_STATE, ram.CUTSCENE_INDEX + 1),
    slice(ram.PALETTE_FADE_MODE, ram.PALETTE_FADE_MODE + 1),
    slice(ram.DEATHS, ram.DEATHS + 4),
    slice(ram.RUPEES_COLLECTED, ram.RUPEES_COLLECTED + 2),
    slice(ram.SMALL_KEYS, ram.ROOM_FLAGS_OVERWORLD + 0x400),  # items, keys, room flags
    slice(ram.NUM_ENEMIES, ram.LINK_DEATH_TRIGGER + 1),
    slice(ram.LINK_OBJECT_INDEX, ram.DUNGEON_FLOOR + 1),  # room, season, dungeon
    slice(ram.LINK_GRAB_STATE, ram.LINK_SWIMMING + 1),
    slice(ram.ACTIVE_TRIGGERS, ram.ACTIVE_TRIGGERS + 1),
    slice(ram.TALKABLE_LIST, ram.TALKABLE_LIST + 32),
    slice(ram.SCROLL_MODE, ram.ROOM_HEIGHT_8PX + 1),
    slice(ram.ROOM_COLLISIONS, ram.ROOM_LAYOUT + 176),
    slice(ram.PUSHED_OBJECT_ENABLED, ram.PUSHED_OBJECT_ID + 1),
    slice(ram.DUNGEON_LAYOUT, ram.DUNGEON_LAYOUT + 256),
    slice(ram.TEXT_OPTION_CURSOR, ram.TEXT_OPTION_CURSOR + 1),
    *ENABLED,  # which objects there are
)
_SIZES: Final = tuple(len(range(*part.indices(IMAGE_SIZE))) for part in _STILL)
BUSY: Final = len(_BUSY)  # parts
BUSY_SIZE: Final = sum(_SIZES[:BUSY])
QUIET_SIZE: Final = sum(_SIZES[BUSY:])
still_of: Final = itemgetter(*_STILL)  # one call, because it is made each step

_ALWAYS: Final = 2  # pages: the hero is in the first, the animal that he rides in the second


def enabled_of(still: Still) -> Still:
    """Which slots of people, enemies and parts are in use: one byte each, 0 for those that are not."""
    return still[-len(ENABLED) :]


def moving(still: Still) -> slice:
    """Where in the image what moves is: all pages of objects up to the last one in use."""
    pages = max(_ALWAYS, *(len(column.rstrip(b"\0")) for column in enabled_of(still)))
    return slice(PAGES, PAGES + pages * PAGE)


class Album:
    """Puts images together again: zeros but for the bytes that decoding needs, so that they decode to the same."""

    def __init__(self) -> None:
        self._image = bytearray(IMAGE_SIZE)
        self._moving = slice(PAGES, PAGES + _ALWAYS * PAGE)

    def turn(self, busy: bytes) -> None:
        """From now on the first parts of what stands still are these, `BUSY_SIZE` bytes."""
        self._paste(busy, 0, BUSY)

    def change(self, quiet: bytes) -> None:
        """From now on the other parts of what stands still are these, `QUIET_SIZE` bytes."""
        self._image[PAGES:PAGES_END] = bytes(PAGES_END - PAGES)
        self._moving = moving(self._paste(quiet, BUSY, len(_STILL)))

    def _paste(self, content: bytes, first: int, after: int) -> Still:
        """Write the parts from `first` to before `after`, joined in `content`."""
        sizes = _SIZES[first:after]
        if len(content) != sum(sizes):
            raise ValueError(f"these parts of an image have {sum(sizes)} bytes, not {len(content)}")
        parts = tuple(map(BytesIO(content).read, sizes))
        for place, part in zip(_STILL[first:after], parts, strict=True):
            self._image[place] = part
        return parts

    @property
    def size(self) -> int:
        """How many bytes move now."""
        return self._moving.stop - self._moving.start

    def image(self, objects: bytes) -> bytes:
        """The image with these objects: `size` bytes."""
        if len(objects) != self.size:
            raise ValueError(f"the objects of this image have {self.size} bytes, not {len(objects)}")
        self._image[self._moving] = objects
        return bytes(self._image)
