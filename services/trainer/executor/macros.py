"""The macros and their grammar. A tile is 16 x 16 pixels; column and row count from the room's upper left corner.

MOVE_TO 4,6              walk to a tile; a column or row just beyond the room leaves it on that side
PUSH_BLOCK 3,4 left      push the block at a tile by one tile
USE_ITEM bombs up        turn (optional) and press the item's button; an item in the pack is equipped first
INTERACT 2,3             walk up to a person, sign, chest or lever and press A
INTERACT                 press A at what is ahead, or read the open dialog to its end
INTERACT yes             as INTERACT, and choose an answer: yes or no
"""

import re
from dataclasses import dataclass
from typing import Final

from shared.game.decoding.names import DIRECTIONS, TREASURES

ITEMS: Final = {name: number for number, name in TREASURES.items() if number < 0x20}
ANSWERS: Final = ("yes", "no")
MAX_LENGTH: Final = 60  # characters of one macro; longer text is not a macro
_TILE: Final = r"(-1|[0-9]{1,2}),(-1|[0-9]{1,2})"
_DIRECTION: Final = f"({'|'.join(DIRECTIONS)})"
_MOVE_TO: Final = re.compile(f"MOVE_TO {_TILE}")
_PUSH_BLOCK: Final = re.compile(f"PUSH_BLOCK {_TILE} {_DIRECTION}")
_USE_ITEM: Final = re.compile(rf"USE_ITEM ([a-z' ]+?)(?: {_DIRECTION})?")
_INTERACT: Final = re.compile(rf"INTERACT(?: {_TILE})?(?: ({'|'.join(ANSWERS)}))?")

_ANY_TILE: Final = "(?:-1|[0-9]{1,2}),(?:-1|[0-9]{1,2})"
_ANY_DIRECTION: Final = f"(?:{'|'.join(DIRECTIONS)})"
GRAMMAR: Final = (
    f"^(?:MOVE_TO {_ANY_TILE}|PUSH_BLOCK {_ANY_TILE} {_ANY_DIRECTION}"
    f"|USE_ITEM (?:{'|'.join(ITEMS)})(?: {_ANY_DIRECTION})?"
    f"|INTERACT(?: {_ANY_TILE})?(?: (?:{'|'.join(ANSWERS)}))?)$"
)
"""The whole grammar as one regular expression, for JSON schemas that constrain a model's reply."""

Tile = tuple[int, int]


class MacroError(ValueError):
    """The text is not a macro. The message says what is wrong."""


@dataclass(frozen=True, slots=True)
class MoveTo:
    """Walk to a tile, or out of the room."""

    tile: Tile

    def __str__(self) -> str:
        return f"MOVE_TO {_text(self.tile)}"


@dataclass(frozen=True, slots=True)
class PushBlock:
    """Push the block at `tile` one tile in `direction` (0 up, 1 right, 2 down, 3 left)."""

    tile: Tile
    direction: int

    def __str__(self) -> str:
        return f"PUSH_BLOCK {_text(self.tile)} {DIRECTIONS[self.direction]}"


@dataclass(frozen=True, slots=True)
class UseItem:
    """Press the button of an item (a treasure's number), after turning to `direction`."""

    item: int
    direction: int | None = None

    def __str__(self) -> str:
        turn = "" if self.direction is None else f" {DIRECTIONS[self.direction]}"
        return f"USE_ITEM {TREASURES[self.item]}{turn}"


@dataclass(frozen=True, slots=True)
class Interact:
    """Talk, read, open or take: press A before `tile`; `answer` is the option to choose, 0 for yes."""

    tile: Tile | None = None
    answer: int | None = None

    def __str__(self) -> str:
        at = "" if self.tile is None else f" {_text(self.tile)}"
        return f"INTERACT{at}" + ("" if self.answer is None else f" {ANSWERS[self.answer]}")


Macro = MoveTo | PushBlock | UseItem | Interact


def parse_macro(text: str) -> Macro:
    """Parse one macro. Raises MacroError for anything else; nothing is guessed."""
    if len(text) > MAX_LENGTH:
        raise MacroError(f"a macro has at most {MAX_LENGTH} characters, this text has {len(text)}")
    if found := _MOVE_TO.fullmatch(text):
        return MoveTo(_tile(found[1], found[2]))
    if found := _PUSH_BLOCK.fullmatch(text):
        return PushBlock(_tile(found[1], found[2]), DIRECTIONS.index(found[3]))
    if found := _USE_ITEM.fullmatch(text):
        if found[1] not in ITEMS:
            raise MacroError(f"{found[1]!r} is not an item: use one of {', '.join(ITEMS)}")
        return UseItem(ITEMS[found[1]], None if found[2] is None else DIRECTIONS.index(found[2]))
    if found := _INTERACT.fullmatch(text):
        tile = None if found[1] is None else _tile(found[1], found[2])
        return Interact(tile, None if found[3] is None else ANSWERS.index(found[3]))
    raise MacroError(f"{text!r} is not a macro: use MOVE_TO X,Y; PUSH_BLOCK X,Y DIRECTION; USE_ITEM NAME; INTERACT X,Y")


def _tile(column: str, row: str) -> Tile:
    return int(column), int(row)


def _text(tile: Tile) -> str:
    return f"{tile[0]},{tile[1]}"
