"""The objects of a room: enemies, people to talk to, things to pick up, flying dangers.

Four kinds of slot are interleaved in the 16 pages of work RAM bank 1; a slot is 64 bytes. Slots left over from the
room before (they vanish when a scroll ends) are ignored.
"""

from functools import partial
from itertools import compress
from operator import itemgetter
from typing import Final, NamedTuple

from shared.game import ram
from shared.game.table import SLOT_SIZE

PAGES: Final = ram.OBJECTS_BANK1
PAGES_END: Final = PAGES + 0x1000
PEOPLE, ENEMIES, PARTS = 0x40, 0x80, 0xC0
SLOTS: Final = 16  # of each kind
FREE: Final = bytes(SLOTS)
HARMLESS: Final = frozenset({0x33, 0x37, 0x38, 0x53, 0x58, 0x59, 0x5A, 0x5B})  # enemy slots that never hurt
TREASURE: Final = 0x60  # people slot that is a treasure lying on the ground
PICKUP_PARTS: Final = frozenset({0x01, 0x10, 0x14, 0x15, 0x28})


class Thing(NamedTuple):
    """One object. Position in pixels of the room; `health` of an enemy, 0 while it dies."""

    id: int
    variant: int
    x: int
    y: int
    health: int


# The call that a named tuple's own constructor ends in: many of these are made each step.
_made: Final = partial(tuple.__new__, Thing)
_FIELDS: Final = itemgetter(ram.OBJECT_ID, ram.OBJECT_SUBID, ram.OBJECT_X, ram.OBJECT_Y, ram.OBJECT_HEALTH)


def _column(kind: int, field: int) -> slice:
    """One field of all slots of a kind."""
    return slice(PAGES + kind + field, PAGES_END, 0x100)


# For `bytes.translate`: 1 where the byte says yes.
_LIVE: Final = bytes(value & 1 for value in range(256))
_TOUCHES: Final = bytes(value >> 7 for value in range(256))
_HARMS: Final = bytes(value not in HARMLESS for value in range(256))
_ENEMY_ENABLED, _ENEMY_TOUCHES = _column(ENEMIES, ram.OBJECT_ENABLED), _column(ENEMIES, ram.OBJECT_COLLISION_TYPE)
_ENEMY_ID, _ENEMY_VARIANT = _column(ENEMIES, ram.OBJECT_ID), _column(ENEMIES, ram.OBJECT_SUBID)
_ENEMY_X, _ENEMY_Y = _column(ENEMIES, ram.OBJECT_X), _column(ENEMIES, ram.OBJECT_Y)
_ENEMY_HEALTH: Final = _column(ENEMIES, ram.OBJECT_HEALTH)
_PART_ENABLED, _PERSON_ID = _column(PARTS, ram.OBJECT_ENABLED), _column(PEOPLE, ram.OBJECT_ID)
_PERSON_ENABLED: Final = _column(PEOPLE, ram.OBJECT_ENABLED)
_number: Final = partial(int.from_bytes, byteorder="little")


def _thing(image: bytes, slot: int) -> Thing:
    return _made(_FIELDS(image[slot : slot + SLOT_SIZE]))


def _live(enabled: bytes, kind: int) -> list[int]:
    """Offsets of the slots of one kind that hold a live object."""
    return [PAGES + kind + (page << 8) for page, flags in enumerate(enabled) if flags & 1]


def enemies(image: bytes) -> tuple[Thing, ...]:
    """Everything in an enemy slot that can hurt. All slots at once: a room may be full of them."""
    enabled = image[_ENEMY_ENABLED]
    if enabled == FREE:
        return ()
    ids = image[_ENEMY_ID]
    live, touches, harms = enabled.translate(_LIVE), image[_ENEMY_TOUCHES].translate(_TOUCHES), ids.translate(_HARMS)
    chosen = (_number(live) & _number(touches) & _number(harms)).to_bytes(SLOTS, "little")
    fields = zip(ids, image[_ENEMY_VARIANT], image[_ENEMY_X], image[_ENEMY_Y], image[_ENEMY_HEALTH], strict=True)
    return tuple(map(_made, compress(fields, chosen)))


def talkers(image: bytes) -> tuple[int, ...]:
    """Slots of what answers to the A button, as the game lists them."""
    listed = image[ram.TALKABLE_LIST : ram.TALKABLE_LIST + 2 * SLOTS]
    return tuple(
        (page << 8 | PEOPLE) - 0xD000 + PAGES
        for page, low in zip(listed[::2], listed[1::2], strict=True)
        if low & PARTS == PEOPLE and 0xD0 <= page < 0xE0
    )


def talkables(image: bytes, slots: tuple[int, ...]) -> tuple[Thing, ...]:
    """People and things in these slots, if they are there."""
    return tuple([_thing(image, slot) for slot in slots if image[slot + ram.OBJECT_ENABLED]])


def parts(image: bytes) -> tuple[tuple[Thing, ...], tuple[Thing, ...]]:
    """Things to pick up, and flying things that hurt. The `variant` of a treasure is the treasure's number."""
    enabled = image[_PART_ENABLED]
    treasures = TREASURE in image[_PERSON_ID]
    if enabled == FREE and not treasures:
        return (), ()
    pickups, dangers = [], []
    for slot in _live(enabled, PARTS):
        if image[slot + ram.OBJECT_ID] in PICKUP_PARTS:
            pickups.append(_thing(image, slot))
        elif image[slot + ram.OBJECT_COLLISION_TYPE] & 0x80 and image[slot + ram.OBJECT_DAMAGE]:
            dangers.append(_thing(image, slot))
    if treasures:
        pickups += _treasures(image)
    return tuple(pickups), tuple(dangers)


def _treasures(image: bytes) -> list[Thing]:
    """Treasures on the ground."""
    slots = [slot for slot in _live(image[_PERSON_ENABLED], PEOPLE) if image[slot + ram.OBJECT_ID] == TREASURE]
    return [_thing(image, slot)._replace(variant=image[slot + ram.OBJECT_TREASURE_ID]) for slot in slots]
