"""The static parts of a RAM image: bytes that decoding needs and that are unchanged in most steps.

The decoder decodes them again only when they change. Every other byte that it reads must lie in the pages of objects.
"""

from operator import itemgetter
from typing import Final

from shared.game.decoding.objects import ENABLED
from shared.game.ram import offsets

ImageParts = tuple[bytes, ...]

STATIC: Final = (
    slice(offsets.PUSH_COUNTER, offsets.PUSH_COUNTER + 1),
    slice(offsets.TEXT_LINE, offsets.TEXT_LINE + 16),
    slice(offsets.TEXT_PRINT_STATE, offsets.TEXT_PRINT_STATE + 1),
    slice(offsets.TEXT_ACTIVE, offsets.MENU_TYPE + 1),
    slice(offsets.DISABLED_OBJECTS, offsets.OPEN_SHUTTERS + 1),
    slice(offsets.SOUND_QUEUE, offsets.SOUND_QUEUE + 16),
    slice(offsets.SOUND_QUEUE_TAIL, offsets.SOUND_QUEUE_TAIL + 1),
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
static_parts: Final = itemgetter(*STATIC)  # one call: it runs every step


def enabled_of(static: ImageParts) -> ImageParts:
    """Which slots of people, enemies and parts are in use: one byte per slot, 0 for a free one."""
    return static[-len(ENABLED) :]
