"""What a room offers to try: its objects and its tiles by kind, so that a single chest counts as much as all grass.

All of it comes from RAM: collision map, metatiles and object slots. No metatile has a meaning here.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from services.trainer.executor.macros import Tile
from services.trainer.executor.outcome import GameView
from shared.game.decoding.grid import HAZARD, SOLID, STRIDE, tile_of

OBJECT_KIND: Final = 0x100  # beyond the numbers of metatiles: each object is a kind of its own
_ALL_SOLID: Final = 0x0F


class Target(NamedTuple):
    """A tile to go to. `solid`: the hero cannot stand on it, so he acts on it from beside.

    `hazard`: it lets him in, and he falls or drowns unless an item helps, as holes and water do.
    """

    kind: int
    tile: Tile
    solid: bool
    hazard: bool = False


def targets_of(view: GameView, hazards: bool = False) -> dict[int, list[Target]]:
    """The targets of the present room by kind: tiles by metatile, and each person and each thing to pick up."""
    found: dict[int, list[Target]] = {}
    for target in (*_tiles(view, hazards), *_objects(view)):
        found.setdefault(target.kind, []).append(target)
    return found


def _tiles(view: GameView, hazards: bool) -> Iterator[Target]:
    grid, metatiles = view.state.grid, view.tiles
    for row in range(grid.height // 2):
        for column in range(grid.width // 2):
            place = row * STRIDE + column
            collision = grid.source[place]
            if collision == HAZARD:
                if hazards:
                    yield Target(metatiles[place], (column, row), solid=True, hazard=True)
            else:
                solid = collision == _ALL_SOLID or collision in SOLID
                yield Target(metatiles[place], (column, row), solid)


def _objects(view: GameView) -> Iterator[Target]:
    state = view.state
    for number, thing in enumerate((*state.talkables, *state.pickups)):
        yield Target(OBJECT_KIND + number, tile_of(thing.x, thing.y), number < len(state.talkables))
