"""Whether the room holds an open puzzle, and its parts, by the metatiles of its layout.

`GameState.puzzle` shows only what is being pushed or held down now; a planner is needed on entering the room.
"""

from dataclasses import dataclass
from typing import Final

from services.trainer.executor.macros import Tile
from services.trainer.executor.outcome import GameView

BUTTON, SWITCH = 0x0C, 0x0E  # a button for the feet, and one that needs a block
BLOCKS: Final = frozenset({0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x25, 0x2A, 0x2C, 0x2D})
SOLVED: Final = 0xC0  # bits of a room's flags: what is to be opened or built here is done
_PARTS: Final = bytes(1 if number in {BUTTON, SWITCH} else 0 for number in range(256))


@dataclass(frozen=True, slots=True)
class PuzzleParts:
    """Tiles of a room's puzzle."""

    buttons: tuple[Tile, ...]
    switches: tuple[Tile, ...]
    blocks: tuple[Tile, ...]


def is_open(view: GameView, outdoors: bool) -> bool | None:
    """Whether the room has an unpressed button or switch and is not solved; None if the game's RAM does not say.

    Outdoors the numbers mean other things in Oracle of Seasons, so `outdoors` says whether they count there.
    """
    state = view.state
    if state.puzzle.triggers is None:
        return None
    if state.outdoors and not outdoors:
        return False
    return 1 in view.tiles.translate(_PARTS) and not state.progress.room(*state.key) & SOLVED


def parts(view: GameView) -> PuzzleParts:
    """The parts of the room's puzzle."""
    wide, high = view.state.grid.width // 2, view.state.grid.height // 2
    numbers = {(column, row): view.tiles[row << 4 | column] for row in range(high) for column in range(wide)}
    return PuzzleParts(
        buttons=tuple(tile for tile, number in numbers.items() if number == BUTTON),
        switches=tuple(tile for tile, number in numbers.items() if number == SWITCH),
        blocks=tuple(tile for tile, number in numbers.items() if number in BLOCKS),
    )
