"""A planner without a model: it reads dialogs, steps on buttons and pushes blocks onto switches, from RAM alone.

It is the default of `planner.mode: rules`, and what tests and measurements compare models with.
"""

from typing import Final

from services.trainer.executor.block_pushes import plan_pushes
from services.trainer.executor.macros import Interact, Macro, MoveTo, PushBlock, Tile
from services.trainer.executor.outcome import GameView
from services.trainer.planning.plan import NoPlan, Plan
from services.trainer.planning.puzzle_room import PuzzleParts, parts
from shared.contracts.driver import Need

YES: Final = 0


class RulesPlanner:
    """Answers with the next step."""

    def __init__(self) -> None:
        self._answer: Plan | NoPlan | None = None

    def ask(self, view: GameView, need: Need) -> None:
        """Make the plan now: it takes milliseconds."""
        self._answer = self._read() if need == "dialog" else self._solve(view)

    def waits(self) -> bool:
        """Never: the plan is there."""
        return False

    def answer(self) -> Plan | NoPlan | None:
        """Return the plan."""
        return self._answer

    def _read(self) -> Plan:
        return Plan("read the dialog and agree", (Interact(answer=YES),))

    def _solve(self, view: GameView) -> Plan | NoPlan:
        found = parts(view)
        macros: list[Macro] = [MoveTo(tile) for tile in sorted(found.buttons, key=lambda tile: _distance(view, tile))]
        if found.switches:
            pushes = _plan_pushes(view, found)
            if pushes is None:
                return NoPlan("the blocks cannot be pushed onto the switches")
            macros += pushes
        return Plan("press every button of the room", tuple(macros)) if macros else NoPlan("nothing is to be pressed")


def _plan_pushes(view: GameView, found: PuzzleParts) -> list[PushBlock] | None:
    """The fewest pushes after which a block lies on every switch. Blocks stay off the outer tiles, as in the games."""
    floor = _floor(view)
    last = view.state.grid.width // 2 - 1, view.state.grid.height // 2 - 1
    space = {tile for tile in floor if 0 < tile[0] < last[0] and 0 < tile[1] < last[1]}
    return plan_pushes(view.standing, found.blocks, found.switches, floor, space)


def _floor(view: GameView) -> set[Tile]:
    """Tiles that the hero can stand on."""
    grid = view.state.grid
    tiles = ((column, row) for row in range(grid.height // 2) for column in range(grid.width // 2))
    return {
        (column, row)
        for column, row in tiles
        if not any(grid.rows[2 * row + down][2 * column + right] for down in (0, 1) for right in (0, 1))
    }


def _distance(view: GameView, tile: Tile) -> int:
    column, row = view.standing
    return abs(tile[0] - column) + abs(tile[1] - row)
