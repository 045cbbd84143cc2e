"""A planner for tests: it knows the world's map and gives the executor macros. The executor itself sees RAM alone."""

import bramble
from bramble.planner.block_puzzle import plan_pushes
from bramble.planner.search import BUTTON, HEAVY, PUSH, PlanStep, cells_with, find_plan
from bramble.solver.router import CUT, RouteNode, Router
from bramble.worlds.model import COLUMNS, ROWS, STEPS, Cell, RoomId
from studies.gate.solver_play import SessionButtons
from tests.unit.executor.played import Played

MACROS_PER_WAY = 60


class ScriptedPlanner:
    """Follows the plan of a world until a step needs a fight, which no macro can win."""

    def __init__(self, game: Played, world: str) -> None:
        self.game, self.world = game, bramble.world(world)
        self.router = Router(self.world, SessionButtons(game.session))
        self.macros: list[tuple[str, str]] = []
        self._done: list[PlanStep] = []

    def play(self) -> str:
        """Carry out the plan. Return why it ended."""
        for step in find_plan(self.world):
            if step.kind == "clear":
                return "a fight"
            if not self._carry_out(step) and not self._ask_again(step):
                return f"{step}: {self.macros[-1]}"
            self._done.append(step)
        return "the end"

    def _ask_again(self, step: PlanStep) -> bool:
        """Repeat earlier talks until the step succeeds: the plan does not count money, and somebody may want a toll."""
        talks = [earlier for earlier in reversed(self._done) if earlier.kind == "talk"]
        return any(self._carry_out(talk) and self._carry_out(step) for talk in talks)

    def _do(self, text: str) -> str:
        outcome = self.game.do(text).outcome
        self.macros.append((text, outcome))
        return outcome

    def _carry_out(self, step: PlanStep) -> bool:
        if step.kind == "take":
            return self._travel(step.room_id, step.cell)
        if step.kind == "talk":
            return self._travel(step.room_id) and self._talk(step.cell)
        if not self._travel(step.room_id):
            return False
        return self._press(step.room_id) if step.kind == "press" else self._open(step.cell)

    def _talk(self, cell: Cell) -> bool:
        for _ in range(3):  # a person may be out of reach behind a bush
            if self._do(f"INTERACT {cell[0]},{cell[1]} yes") == "done":
                return True
            sides = [(cell[0] + dx, cell[1] + dy) for dx, dy in STEPS.values()]
            if not any(self._travel(self.router.here()[0], side) for side in sides if side in self._inside()):
                return False
        return False

    def _press(self, room_id: RoomId) -> bool:
        room = self.world.rooms[room_id]
        if not all(self._travel(room_id, cell) for cell in cells_with(room, BUTTON)):
            return False
        switches = frozenset(cells_with(room, HEAVY))
        blocks = frozenset(cells_with(room, PUSH))
        value = self.game.session.state.grid.rows
        floor = frozenset(cell for cell in self._inside() if value[2 * cell[1]][2 * cell[0]] == 0) | blocks
        pushes = plan_pushes(self.router.here()[1], floor, blocks, switches) if switches else []
        return pushes is not None and all(
            self._do(f"PUSH_BLOCK {block[0]},{block[1]} {direction}") == "done" for block, direction in pushes
        )

    def _open(self, cell: Cell) -> bool:
        side = {0: "up", 7: "down"}.get(cell[1]) or ("left" if cell[0] == 0 else "right")
        return self._do(f"PUSH_BLOCK {cell[0]},{cell[1]} {side}") == "done"

    def _travel(self, room_id: RoomId, cell: Cell | None = None) -> bool:
        for _ in range(MACROS_PER_WAY):
            here, at = self.router.here()
            if here == room_id and cell in (None, at):
                return True
            path = self.router.path(room_id, cell)
            if not path or self._follow(here, at, path) not in ("done", "room_change"):
                return False
        return False

    def _follow(self, here: RoomId, at: Cell, path: list[RouteNode]) -> str:
        """One macro along the path: to its end in this room, to a bush, or out of the room."""
        for node in path:
            if node[0] != here:
                return self._leave(here, at, node)
            if self._is_bush(node):
                if at != self.router.here()[1] and self._do(f"MOVE_TO {at[0]},{at[1]}") != "done":
                    return "stuck"
                side = next(n for n, (dx, dy) in STEPS.items() if (at[0] + dx, at[1] + dy) == node[1])
                return self._do(f"USE_ITEM sword {side}")
            at = node[1]
        return self._do(f"MOVE_TO {at[0]},{at[1]}")

    def _leave(self, here: RoomId, at: Cell, node: RouteNode) -> str:
        if self.router.warp_at(here, at) is not None:
            return self._do(f"MOVE_TO {at[0]},{at[1]}")
        dx, dy = next(delta for side, delta in STEPS.items() if here.neighbour(side) == node[0])
        return self._do(f"MOVE_TO {at[0] + dx},{at[1] + dy}")

    def _is_bush(self, node: RouteNode) -> bool:
        column, row = node[1]
        solid = self.game.session.state.grid.rows[2 * row][2 * column] == 1
        return solid and self.router.tile(*node[:1], node[1], node[2]).act == CUT

    def _inside(self) -> list[Cell]:
        return [(column, row) for row in range(ROWS) for column in range(COLUMNS)]
