"""The objects of a room: enemies, people to talk to, things to pick up, flying dangers.

Four kinds of slot are interleaved in the 16 pages of work RAM bank 1; a slot is 64 bytes. Slots left over from the
room before (they vanish when a scroll ends) are ignored.
"""

from operator import itemgetter
from typing import Final, NamedTuple

from shared.game import ram
from shared.game.table import SLOT_SIZE

PAGES: Final = ram.OBJECTS_BANK1
PAGES_END: Final = PAGES + 0x1000
PEOPLE, ENEMIES, PARTS = 0x40, 0x80, 0xC0
FREE: Final = bytes(16)
HARMLESS: Final = frozenset({0x33, 0x37, 0x38, 0x53, 0x58, 0x59, 0x5A, 0x5B})  # enemy slots that never hurt
TREASURE: Final = 0x60  # people slot that is a treasure lying on the ground
PICKUP_PARTS: Final = frozenset({0x01, 0x10, 0x14, 0x15, 0x28})


_FIELDS: Final = itemgetter(ram.OBJECT_ID, ram.OBJECT_SUBID, ram.OBJECT_X, ram.OBJECT_Y, ram.OBJECT_HEALTH)


class Thing(NamedTuple):
    """One object. Position in pixels of the room; `health` of an enemy, 0 while it dies."""

    id: int
    variant: int
    x: int
    y: int
    health: int


def _thing(image: bytes, slot: int) -> Thing:
    # The call that a named tuple's own constructor ends in: many of these are made each step.
    return tuple.__new__(Thing, _FIELDS(image[slot : slot + SLOT_SIZE]))


def _live(image: bytes, base: int) -> list[int]:
    """Offsets of the slots of one kind that hold a live object."""
    enabled = image[PAGES + base : PAGES_END : 0x100]
    if enabled == FREE:
        return []
    return [PAGES + base + (page << 8) for page, flags in enumerate(enabled) if flags & 1]


def enemies(image: bytes) -> tuple[Thing, ...]:
    """Everything in an enemy slot that can hurt."""
    live = _live(image, ENEMIES)
    if not live:
        return ()
    return tuple(
        [
            _thing(image, slot)
            for slot in live
            if image[slot + ram.OBJECT_COLLISION_TYPE] & 0x80 and image[slot + ram.OBJECT_ID] not in HARMLESS
        ]
    )


def talkables(image: bytes) -> tuple[Thing, ...]:
    """People and things that answer to the A button."""
    pages = image[ram.TALKABLE_LIST : ram.TALKABLE_LIST + 32 : 2]
    if pages == FREE:
        return ()
    found = []
    for page, low in zip(pages, image[ram.TALKABLE_LIST + 1 : ram.TALKABLE_LIST + 32 : 2], strict=True):
        if page == 0:
            continue
        slot = (page << 8 | low & PARTS) - 0xD000 + PAGES
        if low & PARTS == PEOPLE and page >= 0xD0 and page < 0xE0 and image[slot + ram.OBJECT_ENABLED]:
            found.append(_thing(image, slot))
    return tuple(found)


def parts(image: bytes) -> tuple[tuple[Thing, ...], tuple[Thing, ...]]:
    """Things to pick up, and flying things that hurt."""
    live = _live(image, PARTS)
    if not live:
        return (), ()
    pickups, dangers = [], []
    for slot in live:
        if image[slot + ram.OBJECT_ID] in PICKUP_PARTS:
            pickups.append(_thing(image, slot))
        elif image[slot + ram.OBJECT_COLLISION_TYPE] & 0x80 and image[slot + ram.OBJECT_DAMAGE]:
            dangers.append(_thing(image, slot))
    return tuple(pickups), tuple(dangers)


def treasures(image: bytes) -> tuple[Thing, ...]:
    """Treasures on the ground; `variant` is the treasure's number."""
    ids = image[PAGES + PEOPLE + ram.OBJECT_ID : PAGES_END : 0x100]
    if TREASURE not in ids:
        return ()
    slots = [slot for slot in _live(image, PEOPLE) if image[slot + ram.OBJECT_ID] == TREASURE]
    return tuple(_thing(image, slot)._replace(variant=image[slot + ram.OBJECT_TREASURE_ID]) for slot in slots)
