"""Milestones: how far a player has come in a world, decided from RAM alone.

`reached(milestone, read)` needs only a way to read one byte, so that any process can use it: nothing heavy is imported.
A caller keeps what was reached once; some conditions (money in hand) may cease to hold later.
"""

from collections.abc import Callable
from functools import lru_cache

from bramble.model import ITEM, SECOND_ITEM, SOLVED, TRADE, VISITED, Condition, Milestone, Place, World
from bramble.script import treasure_id
from bramble.scriptfile import parse_place
from shared.game.table import Entry, load_table

Read = Callable[[int, int], int]
"""(address, bank) -> byte. Bank 0 stands for addresses that need none, high RAM included."""

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
def _entries() -> dict[str, Entry]:
    return {entry.name: entry for entry in load_table()}


def _value(entry: Entry, offset: int, read: Read) -> int:
    bank = int(entry.bank) if entry.bank.isdigit() else 0
    low = read(entry.address + offset, bank)
    if entry.encoding == "bcd16le":
        high = read(entry.address + 1, bank)
        return (high >> 4) * 1000 + (high & 15) * 100 + (low >> 4) * 10 + (low & 15)
    if entry.encoding == "u16le":
        return low | read(entry.address + 1, bank) << 8
    return low


def holds(condition: Condition, read: Read) -> bool:
    """Whether the condition holds now."""
    value = _value(_entries()[condition.name], condition.offset, read)
    if condition.test == "bit":
        return bool(value & condition.value)
    if condition.test == "count":
        return value.bit_count() >= condition.value
    return value >= condition.value


def reached(milestone: Milestone, read: Read) -> bool:
    """Whether all conditions of the milestone hold now."""
    return all(holds(condition, read) for condition in milestone.conditions)


def room_condition(place: Place, bits: int) -> Condition:
    """A flag of a room."""
    return Condition(ROOM_PAGES[place.group], "bit", bits, place.room)


def _owns(name: str, world: World) -> tuple[Condition, ...]:
    number = treasure_id(name, world.trades)
    owned = Condition("treasure_flags", "bit", 1 << (number & 7), number >> 3)
    if number != TRADE:
        return (owned,)
    return (Condition("trade_item", "at_least", world.trades[name][0]),)


def _place(text: str, world: World) -> Place:
    place = parse_place(text)
    if place not in world.rooms:
        raise ValueError(f"the world has no room {place}")
    return place


def _one(word: str, argument: str, world: World) -> tuple[Condition, ...]:
    if word == "owns":
        return _owns(argument, world)
    if word == "flag":
        flag = world.flags[argument]
        return (Condition("global_flags", "bit", 1 << (flag & 7), flag >> 3),)
    if word == "essences":
        return (Condition("essences", "count", int(argument)),)
    if word in ROOM_BITS:
        return (room_condition(_place(argument, world), ROOM_BITS[word]),)
    if word in COUNTERS:
        return (Condition(COUNTERS[word], "at_least", int(argument)),)
    raise ValueError(f"unknown condition {word!r}: use owns, flag, essences, {', '.join([*ROOM_BITS, *COUNTERS])}")


def parse_milestone(name: str, title: str, text: str, world: World) -> Milestone:
    """A milestone from words such as `owns sword and solved 0:11`. Raise ValueError or KeyError for an unknown word."""
    conditions: list[Condition] = []
    for part in text.split(" and "):
        word, _, argument = part.strip().partition(" ")
        conditions += _one(word, argument.strip(), world)
    return Milestone(name, title, tuple(conditions))
