"""A planner without a model: it reads dialogs, steps on buttons and pushes blocks onto switches, from RAM alone.

It is the default of `planner.mode: rules`, and what tests and measurements compare models with.
"""

from collections import deque
from typing import Final

from services.trainer.executor.macros import Interact, Macro, MoveTo, PushBlock, Tile
from services.trainer.executor.outcome import STEPS, GameView
from services.trainer.planning.plan import NoPlan, Plan
from services.trainer.planning.puzzle_room import PuzzleParts, parts
from shared.contracts.driver import Need

MAX_POSITIONS: Final = 4_000  # of hero and blocks; about 30 ms, and enough for a room with two blocks
YES: Final = 0

Blocks = frozenset[Tile]


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
            pushes = plan_pushes(view, found)
            if pushes is None:
                return NoPlan("the blocks cannot be pushed onto the switches")
            macros += pushes
        return Plan("press every button of the room", tuple(macros)) if macros else NoPlan("nothing is to be pressed")


def plan_pushes(view: GameView, found: PuzzleParts) -> list[PushBlock] | None:
    """The fewest pushes after which a block lies on every switch; None without a way or with too many positions.

    Blocks stay off the outer tiles, and a block on a switch stays there. A breadth-first search over the hero's tile
    and the blocks.
    """
    floor = _floor(view) | set(found.blocks)
    start = view.standing, frozenset(found.blocks)
    came: dict[tuple[Tile, Blocks], tuple[tuple[Tile, Blocks], PushBlock | None] | None] = {start: None}
    queue = deque([start])
    while queue and len(came) < MAX_POSITIONS:
        here = queue.popleft()
        if here[1].issuperset(found.switches):
            return _pushes(came, here)
        for direction, (dx, dy) in enumerate(STEPS):
            there = here[0][0] + dx, here[0][1] + dy
            fixed = there in here[1] and there in found.switches
            step = None if fixed else _step(there, here[1], floor, (dx, dy), view)
            if step is not None and step not in came:
                came[step] = here, PushBlock(there, direction) if there in here[1] else None
                queue.append(step)
    return None


def _step(there: Tile, blocks: Blocks, floor: set[Tile], delta: Tile, view: GameView) -> tuple[Tile, Blocks] | None:
    """Where the hero and the blocks are after a step to `there`. The hero stays behind the block that he pushed."""
    if there not in floor:
        return None
    if there not in blocks:
        return there, blocks
    target = there[0] + delta[0], there[1] + delta[1]
    last = view.state.grid.width // 2 - 1, view.state.grid.height // 2 - 1
    if target in blocks or target not in floor or not (0 < target[0] < last[0] and 0 < target[1] < last[1]):
        return None
    return (there[0] - delta[0], there[1] - delta[1]), blocks - {there} | {target}


def _pushes(
    came: dict[tuple[Tile, Blocks], tuple[tuple[Tile, Blocks], PushBlock | None] | None], last: tuple[Tile, Blocks]
) -> list[PushBlock]:
    pushes: list[PushBlock] = []
    while (step := came[last]) is not None:
        last, push = step
        if push is not None:
            pushes.append(push)
    return pushes[::-1]


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
