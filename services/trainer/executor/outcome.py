"""How a macro ends, and what it sees of the game."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from shared.game.decoding.grid import tile_of
from shared.game.decoding.names import ACTIONS
from shared.game.decoding.state import GameState
from shared.game.ram import offsets

Outcome = Literal["done", "timeout", "hp_drop", "room_change", "stuck", "unknown"]
"""`stuck`: it cannot be done from here; `unknown`: this game's RAM does not say what the macro needs."""

WAIT, A, B, START = (ACTIONS.index(name) for name in ("wait", "a", "b", "start"))
WALK: Final = tuple(ACTIONS.index(name) for name in ("up", "right", "down", "left"))
"""The action that walks in a direction: directions count clockwise from up, actions do not."""
TILES: Final = slice(offsets.ROOM_LAYOUT, offsets.ROOM_LAYOUT + 176)
"""The metatile of each tile of the room within a RAM image."""
STEPS: Final = ((0, -1), (1, 0), (0, 1), (-1, 0))
"""Column and row of one step in each direction."""


@dataclass(frozen=True, slots=True)
class MacroResult:
    """The end of a macro: its outcome, the reason, and the steps it took."""

    outcome: Outcome
    detail: str
    steps: int


class RoutineEnd(NamedTuple):
    """What a routine returns instead of an action when it has ended."""

    outcome: Outcome
    detail: str = ""


class GameView(NamedTuple):
    """One step's view of the game: the decoded state, and the RAM image it was decoded from."""

    state: GameState
    image: bytes

    @property
    def tiles(self) -> bytes:
        """The metatile of each tile of the room, 16 bytes a row."""
        return self.image[TILES]

    @property
    def standing(self) -> tuple[int, int]:
        """Column and row of the tile under the hero's feet."""
        return tile_of(self.state.x, self.state.y)


class StepChooser(Protocol):
    """Chooses actions one step at a time until it has ended: an option, or a way that the hero is led."""

    def next(self, view: GameView) -> int | None:
        """The next action; None when it has ended."""
        ...


DONE: Final = RoutineEnd("done")
