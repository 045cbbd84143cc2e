"""Numbers of the game in words: directions, actions, treasures, sounds, kinds of object.

Judges and people read the words; the policy does not see them.
"""

from typing import Final

DIRECTIONS: Final = ("up", "right", "down", "left")
ACTIONS: Final = ("wait", "up", "down", "left", "right", "a", "b", "start")
BUTTON_OF_ACTION: Final[tuple[str | None, ...]] = (None, "up", "down", "left", "right", "a", "b", "start")
GROUP_AREAS: Final = ("overworld", "underworld", "tree", "indoors", "dungeon", "dungeon", "side view", "side view")
PUSH_REST: Final = 20  # the push counter when nothing is pushed; it counts down from here
SEASONS: Final = ("spring", "summer", "autumn", "winter")

TREASURES: Final[dict[int, str]] = {
    0x01: "shield",
    0x03: "bombs",
    0x05: "sword",
    0x06: "boomerang",
    0x07: "rod of seasons",
    0x08: "magnet gloves",
    0x0C: "biggoron sword",
    0x0D: "bombchus",
    0x0E: "flute",
    0x13: "slingshot",
    0x15: "shovel",
    0x16: "bracelet",
    0x17: "feather",
    0x19: "seed satchel",
    0x1E: "fool's ore",
    0x20: "ember seeds",
    0x21: "scent seeds",
    0x22: "pegasus seeds",
    0x23: "gale seeds",
    0x24: "mystery seeds",
    0x28: "rupees",
    0x29: "hearts",
    0x2A: "heart container",
    0x2B: "piece of heart",
    0x2C: "ring box",
    0x2D: "ring",
    0x2E: "flippers",
    0x2F: "potion",
    0x30: "small key",
    0x31: "boss key",
    0x32: "compass",
    0x33: "dungeon map",
    0x34: "gasha seed",
    0x36: "maku seed",
    0x37: "ore chunks",
    0x40: "essence",
    0x41: "trade item",
    0x42: "gnarled key",
    0x43: "floodgate key",
    0x44: "dragon key",
    0x45: "star ore",
    0x46: "ribbon",
    0x47: "spring banana",
    0x48: "ricky's gloves",
    0x49: "bomb flower",
    0x4A: "pirate's bell",
    0x4B: "treasure map",
    0x4C: "round jewel",
    0x4D: "pyramid jewel",
    0x4E: "square jewel",
    0x4F: "x-shaped jewel",
    0x50: "red ore",
    0x51: "blue ore",
    0x52: "hard ore",
    0x53: "member's card",
    0x54: "master's plaque",
}

FISTS: Final = 0x02
"""Every hero owns it from the start, so no row lists it."""

SUPPLIES: Final = frozenset({0x28, 0x29})
"""Consumable treasures that are counted elsewhere: picking one up is neither progress nor an item."""

# Sound ids that mean an event; other sounds are no events.
SOUND_EVENTS: Final[dict[int, str]] = {
    0x10: "essence",
    0x4C: "item",
    0x4D: "solved",
    0x4E: "enemy hit",
    0x54: "menu opened",
    0x57: "heart",
    0x59: "fell",
    0x5A: "refused",
    0x5B: "solved",
    0x5E: "small item",
    0x5F: "hurt",
    0x61: "rupee",
    0x63: "boss hit",
    0x64: "died",
    0x65: "fell",
    0x67: "boss beaten",
    0x6C: "unlocked",
    0x6D: "cut",
    0x6E: "stairs",
    0x6F: "explosion",
    0x70: "door",
    0x71: "pushed",
    0x72: "torch",
    0x73: "enemy killed",
    0x74: "sword swung",
    0x77: "dropped",
    0x7E: "switch",
}
