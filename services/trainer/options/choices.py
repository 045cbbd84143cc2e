"""The macros of `options/v1`, whose target the room gives.

A choice is a number, so each macro's tile follows from what the hero sees: the nearest way out on one side, the middle
of a ninth of the room, the tile beside him. All of it comes from RAM.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from services.trainer.executor.executor import Executor
from services.trainer.executor.macros import ITEMS, Interact, Macro, MoveTo, PushBlock, Tile, UseItem
from services.trainer.executor.navigation_grid import NARROW, WIDE, NavigationGrid, Place, navigation_grid, warp_tiles
from services.trainer.executor.outcome import STEPS, GameView
from shared.game.decoding.names import DIRECTIONS

THIRDS: Final = range(3)


@dataclass(frozen=True, slots=True)
class MacroChoice:
    """One macro that can be chosen. `make` gives it for the present room; None where it is impossible."""

    name: str
    make: Callable[[GameView], Macro | None]

    def begin(self, view: GameView) -> Executor | None:
        """The macro, ready to be carried out in the present room; None where it is impossible."""
        macro = self.make(view)
        return None if macro is None else Executor(macro, view)


def leave_room(direction: int, view: GameView) -> MoveTo | None:
    """Leave the room on one side, at the reachable tile of that edge nearest to the hero."""
    columns, rows = _size(view)
    dx, dy = STEPS[direction]
    column, row = view.standing
    edge = (0 if dx < 0 else columns - 1, 0 if dy < 0 else rows - 1)
    tiles = [(x, edge[1]) for x in range(columns)] if dy else [(edge[0], y) for y in range(rows)]
    tile = _first_reachable(view, sorted(tiles, key=lambda one: abs(one[0] - column) + abs(one[1] - row)))
    return None if tile is None else MoveTo((tile[0] + dx, tile[1] + dy))


def walk_to_area(across: int, down: int, view: GameView) -> Macro | None:
    """Walk to a ninth of the room: to its reachable tile nearest to the middle, and onto no door or stairs."""
    columns, rows = _size(view)
    middle = (2 * across + 1) * columns / 6 - 0.5, (2 * down + 1) * rows / 6 - 0.5
    warps = warp_tiles(view.tiles, view.state.outdoors)
    tiles = [
        (x, y)
        for x in range(across * columns // 3, (across + 1) * columns // 3)
        for y in range(down * rows // 3, (down + 1) * rows // 3)
        if (x, y) not in warps
    ]
    tile = _first_reachable(view, sorted(tiles, key=lambda one: abs(one[0] - middle[0]) + abs(one[1] - middle[1])))
    return None if tile is None else MoveTo(tile)


def push_beside(direction: int, view: GameView) -> Macro | None:
    """Push what stands beside the hero away from him."""
    columns, rows = _size(view)
    tile = view.standing[0] + STEPS[direction][0], view.standing[1] + STEPS[direction][1]
    inside = 0 <= tile[0] < columns and 0 <= tile[1] < rows
    return PushBlock(tile, direction) if inside else None


CHOICES: Final = (
    *(MacroChoice(f"leave {name}", partial(leave_room, number)) for number, name in enumerate(DIRECTIONS)),
    *(MacroChoice(f"walk to {x},{y}", partial(walk_to_area, x, y)) for y in THIRDS for x in THIRDS),
    *(MacroChoice(f"push {name}", partial(push_beside, number)) for number, name in enumerate(DIRECTIONS)),
    MacroChoice("interact", lambda view: Interact()),
    *(MacroChoice(f"use {name}", partial(lambda item, view: UseItem(item), item)) for name, item in ITEMS.items()),
)
"""The macros of options/v1, in the order of their numbers. A changed order or number is another version."""


def _size(view: GameView) -> tuple[int, int]:
    """Columns and rows of the room, in tiles."""
    return view.state.grid.width // 2, view.state.grid.height // 2


def _first_reachable(view: GameView, tiles: Iterable[Tile]) -> Tile | None:
    """The first of these tiles that the hero can walk to, over wide places, else over narrow ones."""
    state, every = view.state, list(tiles)
    for size in (WIDE, NARROW):
        navigation = navigation_grid(state.grid, size)
        reached = reachable(navigation, navigation.near(state.x, state.y))
        for tile in every:
            if not reached.isdisjoint(navigation.on_tile(tile)):
                return tile
    return None


def reachable(navigation: NavigationGrid, starts: Iterable[Place]) -> set[Place]:
    """All places that can be walked to from these."""
    reached = set(starts)
    ahead = list(reached)
    while ahead:
        column, row = ahead.pop()
        around = {(column + dx, row + dy) for dx, dy in STEPS} - reached
        free = [place for place in around if navigation.is_free(place)]
        reached.update(free)
        ahead += free
    return reached
