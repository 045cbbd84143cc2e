"""Milestones: the progress of a player in a world, decided from RAM alone.

`reached(milestone, read)` needs only a function that reads one byte, and imports nothing heavy. The caller remembers
reached milestones, because some conditions (rupees in hand) can become false again.
"""

from collections.abc import Callable
from functools import lru_cache

from bramble.worlds.model import ITEM, SECOND_ITEM, SOLVED, TRADE, VISITED, RamCondition, RoomId, World, WorldMilestone
from bramble.worlds.script import treasure_id
from bramble.worlds.script_parser import parse_room_id
from shared.game.ram.table import RamEntry, load_table

Read = Callable[[int, int], int]
"""(address, bank) -> byte. Bank 0 means unbanked memory, high RAM included."""

ROOM_PAGES = {
    0: "room_flags_overworld",
    1: "room_flags_subrosia_indoor",
    2: "room_flags_subrosia_indoor",
    3: "room_flags_subrosia_indoor",
    4: "room_flags_group4",
    5: "room_flags_group5",
}
ROOM_BITS = {"visited": VISITED, "solved": SOLVED, "taken": ITEM, "taken_second": SECOND_ITEM}
COUNTERS = {"rupees": "rupees", "kills": "enemies_killed", "quarters": "max_health"}


@lru_cache(maxsize=1)
def _entries() -> dict[str, RamEntry]:
    return {entry.name: entry for entry in load_table()}


def _value(entry: RamEntry, offset: int, read: Read) -> int:
    bank = int(entry.bank) if entry.bank.isdigit() else 0
    low = read(entry.address + offset, bank)
    if entry.encoding == "bcd16le":
        high = read(entry.address + 1, bank)
        return (high >> 4) * 1000 + (high & 15) * 100 + (low >> 4) * 10 + (low & 15)
    if entry.encoding == "u16le":
        return low | read(entry.address + 1, bank) << 8
    return low


def holds(condition: RamCondition, read: Read) -> bool:
    """Whether the condition holds now."""
    value = _value(_entries()[condition.name], condition.offset, read)
    if condition.comparison == "bit":
        return bool(value & condition.value)
    if condition.comparison == "count":
        return value.bit_count() >= condition.value
    return value >= condition.value


def reached(milestone: WorldMilestone, read: Read) -> bool:
    """Whether all conditions of the milestone hold now."""
    return all(holds(condition, read) for condition in milestone.conditions)


def room_condition(room_id: RoomId, bits: int) -> RamCondition:
    """A flag of a room."""
    return RamCondition(ROOM_PAGES[room_id.group], "bit", bits, room_id.room)


def _owns(name: str, world: World) -> tuple[RamCondition, ...]:
    number = treasure_id(name, world.trades)
    owned = RamCondition("treasure_flags", "bit", 1 << (number & 7), number >> 3)
    if number != TRADE:
        return (owned,)
    return (RamCondition("trade_item", "at_least", world.trades[name][0]),)


def _room_id(text: str, world: World) -> RoomId:
    room_id = parse_room_id(text)
    if room_id not in world.rooms:
        raise ValueError(f"the world has no room {room_id}")
    return room_id


def _one(word: str, argument: str, world: World) -> tuple[RamCondition, ...]:
    if word == "owns":
        return _owns(argument, world)
    if word == "flag":
        flag = world.flags[argument]
        return (RamCondition("global_flags", "bit", 1 << (flag & 7), flag >> 3),)
    if word == "essences":
        return (RamCondition("essences", "count", int(argument)),)
    if word in ROOM_BITS:
        return (room_condition(_room_id(argument, world), ROOM_BITS[word]),)
    if word in COUNTERS:
        return (RamCondition(COUNTERS[word], "at_least", int(argument)),)
    raise ValueError(f"unknown condition {word!r}: use owns, flag, essences, {', '.join([*ROOM_BITS, *COUNTERS])}")


def parse_milestone(name: str, title: str, text: str, world: World) -> WorldMilestone:
    """A milestone from words such as `owns sword and solved 0:11`. Raise ValueError or KeyError for an unknown word."""
    conditions: list[RamCondition] = []
    for part in text.split(" and "):
        word, _, argument = part.strip().partition(" ")
        conditions += _one(word, argument.strip(), world)
    return WorldMilestone(name, title, tuple(conditions))
