"""The objects of a room: enemies, people to talk to, things to pick up, flying dangers.

Four kinds of slot are interleaved in the 16 pages of work RAM bank 1; a slot is 64 bytes. Slots left from the previous
room (they disappear when a scroll ends) are ignored.
"""

from functools import partial
from itertools import compress
from operator import itemgetter
from typing import Final, NamedTuple

from shared.game.ram import offsets
from shared.game.ram.table import SLOT_SIZE

PAGES: Final = offsets.OBJECTS_BANK1
PAGES_END: Final = PAGES + 0x1000
PAGE: Final = 0x100  # bytes; a slot of each kind
PEOPLE, ENEMIES, PARTS = 0x40, 0x80, 0xC0
SLOTS: Final = 16  # of each kind
FREE: Final = bytes(SLOTS)
HARMLESS: Final = frozenset({0x33, 0x37, 0x38, 0x53, 0x58, 0x59, 0x5A, 0x5B})  # enemy ids that do no harm
TREASURE: Final = 0x60  # people slot that is a treasure lying on the ground
PICKUP_PARTS: Final = frozenset({0x01, 0x10, 0x14, 0x15, 0x28})


USUAL_HALF: Final = 6  # pixels from the middle of most objects to the edge of their hit box


class GameObject(NamedTuple):
    """One object. Position in pixels of the room; `health` of an enemy, 0 while it dies."""

    id: int
    variant: int
    x: int
    y: int
    health: int
    half_width: int = USUAL_HALF
    """Pixels from its middle to the side of its hit box."""
    half_height: int = USUAL_HALF
    """Pixels from its middle to the top of its hit box."""


# `tuple.__new__` skips the named tuple's slower constructor: every step creates many objects.
_made: Final = partial(tuple.__new__, GameObject)
_FIELDS: Final = itemgetter(
    *(offsets.OBJECT_ID, offsets.OBJECT_SUBID, offsets.OBJECT_X, offsets.OBJECT_Y, offsets.OBJECT_HEALTH),
    *(offsets.OBJECT_HALF_WIDTH, offsets.OBJECT_HALF_HEIGHT),
)


def _column(kind: int, field: int) -> slice:
    """One field of all slots of a kind."""
    return slice(PAGES + kind + field, PAGES_END, PAGE)


# Tables for `bytes.translate`: 1 where the condition holds.
_LIVE: Final = bytes(value & 1 for value in range(256))
_TOUCHES: Final = bytes(value >> 7 for value in range(256))
_HARMS: Final = bytes(value not in HARMLESS for value in range(256))
ENABLED: Final = tuple(_column(kind, offsets.OBJECT_ENABLED) for kind in (PEOPLE, ENEMIES, PARTS))  # 0 is a free slot
_ENEMY_TOUCHES: Final = _column(ENEMIES, offsets.OBJECT_COLLISION_TYPE)
_ENEMY_ID, _ENEMY_VARIANT = _column(ENEMIES, offsets.OBJECT_ID), _column(ENEMIES, offsets.OBJECT_SUBID)
_ENEMY_X, _ENEMY_Y = _column(ENEMIES, offsets.OBJECT_X), _column(ENEMIES, offsets.OBJECT_Y)
_ENEMY_HEALTH: Final = _column(ENEMIES, offsets.OBJECT_HEALTH)
_ENEMY_HALF_WIDTH: Final = _column(ENEMIES, offsets.OBJECT_HALF_WIDTH)
_ENEMY_HALF_HEIGHT: Final = _column(ENEMIES, offsets.OBJECT_HALF_HEIGHT)
_PERSON_ID: Final = _column(PEOPLE, offsets.OBJECT_ID)
_number: Final = partial(int.from_bytes, byteorder="little")


def _object(image: bytes, slot: int) -> GameObject:
    return _made(_FIELDS(image[slot : slot + SLOT_SIZE]))


def _slots(enabled: bytes, kind: int) -> list[int]:
    """Offsets of the slots of one kind that hold a live object."""
    return [PAGES + kind + (page << 8) for page, flags in enumerate(enabled) if flags & 1]


def live(enabled: bytes) -> int:
    """One byte a slot, the first one lowest: 1 where it holds a live object."""
    return _number(enabled.translate(_LIVE))


def enemies(image: bytes, alive: int) -> tuple[GameObject, ...]:
    """The harmful objects in these enemy slots. All slots are read together: a room may be full of enemies."""
    ids = image[_ENEMY_ID]
    touches, harms = image[_ENEMY_TOUCHES].translate(_TOUCHES), ids.translate(_HARMS)
    chosen = (alive & _number(touches) & _number(harms)).to_bytes(SLOTS, "little")
    places = image[_ENEMY_X], image[_ENEMY_Y]
    sizes = image[_ENEMY_HALF_WIDTH], image[_ENEMY_HALF_HEIGHT]
    fields = zip(ids, image[_ENEMY_VARIANT], *places, image[_ENEMY_HEALTH], *sizes, strict=True)
    return tuple(map(_made, compress(fields, chosen)))


def talkers(image: bytes) -> tuple[int, ...]:
    """Slots of objects that react to the A button, as the game lists them."""
    listed = image[offsets.TALKABLE_LIST : offsets.TALKABLE_LIST + 2 * SLOTS]
    return tuple(
        (page << 8 | PEOPLE) - 0xD000 + PAGES
        for page, low in zip(listed[::2], listed[1::2], strict=True)
        if low & PARTS == PEOPLE and 0xD0 <= page < 0xE0
    )


def talkables(image: bytes, slots: tuple[int, ...]) -> tuple[GameObject, ...]:
    """The objects in these slots that are enabled."""
    return tuple([_object(image, slot) for slot in slots if image[slot + offsets.OBJECT_ENABLED]])


def parts(image: bytes, enabled: bytes, people: bytes) -> tuple[tuple[GameObject, ...], tuple[GameObject, ...]]:
    """Objects to pick up, and harmful projectiles. The `variant` of a treasure is the treasure's number."""
    treasures = TREASURE in image[_PERSON_ID]
    if enabled == FREE and not treasures:
        return (), ()
    pickups, dangers = [], []
    for slot in _slots(enabled, PARTS):
        if image[slot + offsets.OBJECT_ID] in PICKUP_PARTS:
            pickups.append(_object(image, slot))
        elif image[slot + offsets.OBJECT_COLLISION_TYPE] & 0x80 and image[slot + offsets.OBJECT_DAMAGE]:
            dangers.append(_object(image, slot))
    if treasures:
        pickups += _treasures(image, people)
    return tuple(pickups), tuple(dangers)


def _treasures(image: bytes, people: bytes) -> list[GameObject]:
    """Treasures on the ground. One in state 0 is not there yet: it appears when its room is solved."""
    slots = [
        slot
        for slot in _slots(people, PEOPLE)
        if image[slot + offsets.OBJECT_ID] == TREASURE and image[slot + offsets.OBJECT_STATE]
    ]
    return [_object(image, slot)._replace(variant=image[slot + offsets.OBJECT_TREASURE_ID]) for slot in slots]
