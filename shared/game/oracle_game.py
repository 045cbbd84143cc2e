"""The first milestones of Oracle of Seasons, in the order of the story, as bits of its save block."""

from collections.abc import Callable
from typing import Final

from shared.game.memory import has_bit, read, read_number
from shared.game.roms import Milestone

_OVERWORLD, _GROUP4 = "room_flags_overworld", "room_flags_group4"


def _room_bit(image: bytes, table: str, room: int, mask: int) -> bool:
    flags = read(image, table)
    return isinstance(flags, bytes) and bool(flags[room] & mask)


def _essence(number: int) -> Callable[[bytes], bool]:
    return lambda image: bool(read_number(image, "essences") >> (number - 1) & 1)


MILESTONES: Final = (
    Milestone("intro done", lambda image: has_bit(image, "global_flags", 0x0A)),
    Milestone("sword", lambda image: has_bit(image, "treasure_flags", 0x05)),
    Milestone("gnarled key given", lambda image: has_bit(image, "global_flags", 0x18)),
    Milestone("gnarled key held", lambda image: has_bit(image, "treasure_flags", 0x42)),
    Milestone("first dungeon unlocked", lambda image: _room_bit(image, _OVERWORLD, 0x96, 0x80)),
    Milestone("first dungeon entered", lambda image: _room_bit(image, _GROUP4, 0x1C, 0x10)),
    Milestone("first miniboss beaten", lambda image: _room_bit(image, _GROUP4, 0x0B, 0x80)),
    Milestone("first boss beaten", lambda image: _room_bit(image, _GROUP4, 0x12, 0x80)),
    *(Milestone(f"essence {number}", _essence(number)) for number in range(1, 9)),
)
