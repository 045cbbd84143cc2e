"""One state as compact JSON, for a model: the hero, the room as rows of tiles, what is in it, the open dialog.

Texts of the game stand only in `dialog.text`, as a JSON string: JSON escapes every character that could end it, and the
prompt calls it data. Unknown values are null.
"""

import json
from typing import Any, Final

from services.trainer.executor.macros import ITEMS
from services.trainer.executor.navigation_grid import warp_tiles
from services.trainer.executor.outcome import GameView
from services.trainer.planning.puzzle_room import parts
from shared.game.decoding.grid import tile_of
from shared.game.decoding.names import DIRECTIONS, GROUP_AREAS, SEASONS, TREASURES
from shared.game.decoding.objects import GameObject

MAX_TEXT: Final = 200  # characters of a dialog's line; more, and one text fills the prompt
MAX_OBJECTS: Final = 12
HERO, FREE, SOLID, HAZARD, PARTLY, WAY_OUT, BUTTON, SWITCH, BLOCK = "@.#~+DoxB"
LEGEND: Final = (
    f"{HERO} hero, {FREE} free, {SOLID} solid, {PARTLY} partly solid, {HAZARD} hole or water, "
    f"{WAY_OUT} door, stairs or cave, {BUTTON} button, {SWITCH} switch for a block, {BLOCK} block"
)
_QUARTERS: Final = {frozenset({0}): FREE, frozenset({1}): SOLID}


def facts_json(view: GameView, *, puzzle: bool) -> str:
    """The state as JSON without spaces. `puzzle`: the room's metatiles are a puzzle's, so its parts are marked."""
    return json.dumps(room_facts(view, puzzle=puzzle), separators=(",", ":"))


def room_facts(view: GameView, *, puzzle: bool) -> dict[str, Any]:
    """The state as plain data."""
    state = view.state
    inventory = state.inventory
    return {
        "room": f"{state.group}:{state.room:02x}",
        "area": GROUP_AREAS[state.group & 7],
        "season": None if state.season is None else SEASONS[state.season & 3],
        "hero": {
            "tile": list(view.standing),
            "facing": DIRECTIONS[state.facing & 3],
            "hearts": inventory.health / 4,
            "max_hearts": inventory.max_health / 4,
        },
        "items": _items(inventory.treasures),
        "buttons": {"a": _name(inventory.equipped_a), "b": _name(inventory.equipped_b)},
        "keys": state.keys,
        "grid": tile_rows(view, puzzle=puzzle),
        "exits": [name for name, cell in zip(DIRECTIONS, state.grid.exits, strict=True) if cell is not None],
        "enemies": _tiles(state.enemies),
        "people": _tiles(state.talkables),
        "pickups": _tiles(state.pickups),
        "dialog": _dialog(view),
    }


def tile_rows(view: GameView, *, puzzle: bool) -> list[str]:
    """The room, a character a tile; see LEGEND."""
    grid = view.state.grid
    rows = [[_tile(grid.rows, column, row) for column in range(grid.width // 2)] for row in range(grid.height // 2)]
    marks = [(warp_tiles(view.tiles, view.state.outdoors), WAY_OUT)]
    if puzzle:
        found = parts(view)
        marks += [
            (frozenset(found.buttons), BUTTON),
            (frozenset(found.switches), SWITCH),
            (frozenset(found.blocks), BLOCK),
        ]
    for tiles, mark in [*marks, (frozenset({view.standing}), HERO)]:
        for column, row in tiles:
            if 0 <= row < len(rows) and 0 <= column < len(rows[row]):
                rows[row][column] = mark
    return ["".join(row) for row in rows]


def _tile(rows: tuple[bytes, ...], column: int, row: int) -> str:
    cells = frozenset(rows[2 * row + down][2 * column + right] for down in (0, 1) for right in (0, 1))
    return HAZARD if 2 in cells else _QUARTERS.get(cells, PARTLY)


def _items(treasures: frozenset[int] | None) -> list[str] | None:
    if treasures is None:
        return None
    return [name for name, number in ITEMS.items() if number in treasures]


def _name(item: int | None) -> str | None:
    return None if item is None else TREASURES.get(item)


def _tiles(objects: tuple[GameObject, ...]) -> list[list[int]]:
    return [list(tile_of(found.x, found.y)) for found in objects[:MAX_OBJECTS]]


def _dialog(view: GameView) -> dict[str, Any] | None:
    dialog = view.state.dialog
    if dialog is None:
        return None
    return {"text": dialog.line[:MAX_TEXT], "choosing": dialog.choosing}
