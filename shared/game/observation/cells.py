"""Cells of the game for visit counts, by version: where the hero is, what he tries there, what he owns.

A place is a tile in rooms of 10 x 8 tiles. The direction and the tile ahead belong to a cell only while A or B is
pressed: trying the sword on something is another cell than walking past it, in any direction. Clocks, health,
enemies and counters are not in it: they would make every state a new cell.
"""

from typing import Final

from shared.game.observation.layout import BLOCKS, INDEX

VERSION: Final = "cells/v1"
VALUES: Final = 64  # values per unit of features that are exact: finer than any of them
BUTTONS: Final = ("last_a", "last_b")
AIMED: Final = ("facing_up", "facing_right", "facing_down", "facing_left", "ahead_tile_high", "ahead_tile_low")
"""Features that count only while one of BUTTONS is pressed."""

_ROOM: Final = tuple(
    feature.name for block in BLOCKS for feature in block if feature.block == "room" and "map" not in feature.name
)
_OWNED: Final = ("sword", "shield", "feather", "bracelet", "flippers", "season_rod", "essences", "treasures")
_SOLVED: Final = ("small_keys", "boss_key", "buttons_down", "levers", "torches", "shutters_open")

RESOLUTION: Final = {
    "x": 5,
    "y": 4,
    **dict.fromkeys((*_ROOM, "dungeon_number", *_OWNED, *_SOLVED, *BUTTONS, *AIMED), VALUES),
}
"""Features of obs/v1 that make a cell, with the number of values that each may have per unit."""

COLUMNS: Final = tuple(INDEX[name] for name in RESOLUTION)
"""Their indices in obs/v1, in the same order."""
