"""Plays a world to its end with buttons: carries out the planner's plan, step by step."""

from bramble.planner.block_puzzle import plan_pushes
from bramble.planner.search import BOMB, BUTTON, HEAVY, PUSH, PlanStep, cells_with, find_plan
from bramble.solver.walker import Walker
from bramble.worlds.model import COLUMNS, ROWS, STEPS, Cell, RoomId, World

SAFE_CELLS = 3
"""Distance in cells at which a blast does no harm."""
FUSE_STEPS, BLASTS = 40, 4


def execute_plan(walker: Walker, world: World) -> None:
    """Carry out all steps of the world's plan. Raise StuckError if a step fails."""
    for step in find_plan(world):
        _execute(walker, step)
    walker.settle()


def _execute(walker: Walker, step: PlanStep) -> None:
    if step.kind == "talk":
        walker.talk(step.room_id, step.cell)
    elif step.kind == "take":
        walker.travel(step.room_id, step.cell)
        walker.settle()
    elif step.kind == "open":
        _open(walker, step)
    elif step.kind == "clear":
        walker.travel(step.room_id)
        walker.clear_room()
    else:
        _press(walker, step.room_id)


def _open(walker: Walker, step: PlanStep) -> None:
    if step.cell in cells_with(walker.world.rooms[step.room_id], BOMB):
        blast(walker, step.room_id, step.cell)
        return
    walker.travel(step.room_id, _before(step.cell))
    walker.open_door(_direction(step.cell), step.cell)


def _press(walker: Walker, room_id: RoomId) -> None:
    """Step on all buttons, then push blocks onto all switches."""
    room = walker.world.rooms[room_id]
    for cell in cells_with(room, BUTTON):
        walker.travel(room_id, cell)
    switches = frozenset(cells_with(room, HEAVY))
    if not switches:
        return
    walker.travel(room_id)
    blocks = frozenset(cells_with(room, PUSH))
    pushes = plan_pushes(walker.cell, _floor(walker) | blocks, blocks, switches)
    if pushes is None:
        raise walker.stuck("the blocks cannot be pushed onto the switches")
    for block, direction in pushes:
        walker.push(block, direction)


def _floor(walker: Walker) -> frozenset[Cell]:
    """Free cells of the current room, from RAM."""
    cells = [(x, y) for y in range(ROWS) for x in range(COLUMNS)]
    return frozenset(cell for cell in cells if not walker.game.value("room_collisions", cell[1] * 16 + cell[0]))


def blast(walker: Walker, room_id: RoomId, cell: Cell) -> None:
    """Place a bomb at a cracked wall, retreat, and wait until it opens. Retries if enemies interfere."""
    for _ in range(BLASTS):
        walker.travel(room_id, walker.beside(room_id, cell))
        walker.face(walker.direction_to(cell))
        walker.use("bombs")
        walker.travel(room_id, _shelter(walker, room_id))
        for _ in range(FUSE_STEPS):
            if walker.router.door_open(room_id, cell):
                return
            walker.press("nop")
    raise walker.stuck(f"the wall at {cell} does not open")


def _shelter(walker: Walker, room_id: RoomId) -> Cell:
    """The nearest cell out of reach of a bomb at the hero's feet."""
    x, y = walker.cell
    far = [
        c for c in _floor(walker) if max(abs(c[0] - x), abs(c[1] - y)) >= SAFE_CELLS and 0 < c[0] < 9 and 0 < c[1] < 7
    ]
    paths = [(len(path), cell) for cell in sorted(far) if (path := walker.router.path(room_id, cell)) is not None]
    if not paths:
        raise walker.stuck("no cell is safe from the bomb")
    return min(paths)[1]


def _direction(cell: Cell) -> str:
    """Direction of the edge that holds a door."""
    column, row = cell
    return {0: "up", 7: "down"}.get(row) or ("left" if column == 0 else "right")


def _before(cell: Cell) -> Cell:
    """The cell in front of a door."""
    dx, dy = STEPS[_direction(cell)]
    return cell[0] - dx, cell[1] - dy
