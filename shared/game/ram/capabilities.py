"""The capabilities of a game: groups of variables in the RAM table (its column `capability`).

A game declares its capabilities. A variable without its capability is unknown: the bytes at its address mean something
else, or nothing.
"""

from typing import Final

from shared.game.ram.variables import entries

CORE: Final = frozenset({"core", "objects"})
BRAMBLE: Final = CORE | {
    "bombs", "chest", "choice", "dialog", "dungeon", "dungeon_items", "essences", "flags", "grab", "heart_pieces",
    "inventory", "jump", "menu", "money", "puzzle", "season", "sound", "stats", "swim", "sword", "trade", "walls",
}  # fmt: skip


def all_capabilities() -> frozenset[str]:
    """All capabilities of the table: what Oracle of Seasons has."""
    return frozenset(entry.capability for entry in entries().values())
