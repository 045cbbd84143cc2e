"""Cells of the game for visit counts, by version: where the hero is, what he faces and presses, what he owns.

A cell is coarse in place and exact in everything else. Clocks, health, enemies and counters are not in it: they would
make every state a new cell. The button is: trying the sword on something is another cell than walking past it.
"""

from typing import Final

from shared.game.observation.layout import BLOCKS, INDEX

VERSION: Final = "cells/v1"
PLACES: Final = 8  # values of x and y per unit, so 16 columns and 16 rows in a room
VALUES: Final = 64  # values per unit of everything else; finer than any of these features

_ROOM: Final = tuple(
    feature.name for block in BLOCKS for feature in block if feature.block == "room" and "map" not in feature.name
)
_HERE: Final = ("dungeon_number", "facing_up", "facing_right", "facing_down", "facing_left", "last_a", "last_b")
_AHEAD: Final = ("ahead_tile_high", "ahead_tile_low")
_OWNED: Final = ("sword", "shield", "feather", "bracelet", "flippers", "season_rod", "essences", "treasures")
_SOLVED: Final = ("small_keys", "boss_key", "buttons_down", "levers", "torches", "shutters_open")

RESOLUTION: Final = {
    "x": PLACES,
    "y": PLACES,
    **dict.fromkeys((*_ROOM, *_HERE, *_AHEAD, *_OWNED, *_SOLVED), VALUES),
}
"""Features of obs/v1 that make a cell, with the number of values that each may have per unit."""

COLUMNS: Final = tuple(INDEX[name] for name in RESOLUTION)
"""Their indices in obs/v1, in the same order."""
