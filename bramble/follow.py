"""Plays any proven world to its end by buttons alone: it carries out the plan of proof.py, deed by deed."""

from bramble.blocks import plan_pushes
from bramble.model import COLUMNS, ROWS, STEPS, Cell, Place, World
from bramble.proof import BOMB, BUTTON, HEAVY, PUSH, Deed, cells_with, prove
from bramble.walk import Player

SAFE_CELLS = 3
"""So far a blast does not reach."""
FUSE_STEPS, BLASTS = 40, 4


def follow(player: Player, world: World) -> None:
    """Do all deeds of the world's plan. StuckError when one cannot be done."""
    for deed in prove(world):
        _do(player, deed)
    player.settle()


def _do(player: Player, deed: Deed) -> None:
    if deed.kind == "talk":
        player.talk(deed.place, deed.cell)
    elif deed.kind == "take":
        player.travel(deed.place, deed.cell)
        player.settle()
    elif deed.kind == "open":
        _open(player, deed)
    elif deed.kind == "clear":
        player.travel(deed.place)
        player.clear_room()
    else:
        _press(player, deed.place)


def _open(player: Player, deed: Deed) -> None:
    if deed.cell in cells_with(player.world.rooms[deed.place], BOMB):
        blast(player, deed.place, deed.cell)
        return
    player.travel(deed.place, _before(deed.cell))
    player.open_door(_direction(deed.cell), deed.cell)


def _press(player: Player, place: Place) -> None:
    """Step on all buttons, then push blocks onto all switches."""
    room = player.world.rooms[place]
    for cell in cells_with(room, BUTTON):
        player.travel(place, cell)
    switches = frozenset(cells_with(room, HEAVY))
    if not switches:
        return
    player.travel(place)
    blocks = frozenset(cells_with(room, PUSH))
    pushes = plan_pushes(player.cell, _floor(player) | blocks, blocks, switches)
    if pushes is None:
        raise player.complain("the blocks cannot be pushed onto the switches")
    for block, direction in pushes:
        player.push(block, direction)


def _floor(player: Player) -> frozenset[Cell]:
    """Free cells of this room, from RAM."""
    cells = [(x, y) for y in range(ROWS) for x in range(COLUMNS)]
    return frozenset(cell for cell in cells if not player.game.value("room_collisions", cell[1] * 16 + cell[0]))


def blast(player: Player, place: Place, cell: Cell) -> None:
    """Put a bomb before a cracked wall, run, and wait until it is open; again when beaten on the way."""
    for _ in range(BLASTS):
        player.travel(place, player.beside(place, cell))
        player.face(player.direction_to(cell))
        player.use("bombs")
        player.travel(place, _shelter(player, place))
        for _ in range(FUSE_STEPS):
            if player.router.door_open(place, cell):
                return
            player.press("nop")
    raise player.complain(f"the wall at {cell} does not burst")


def _shelter(player: Player, place: Place) -> Cell:
    """The nearest cell out of reach of a bomb at the hero's feet."""
    x, y = player.cell
    far = [
        c for c in _floor(player) if max(abs(c[0] - x), abs(c[1] - y)) >= SAFE_CELLS and 0 < c[0] < 9 and 0 < c[1] < 7
    ]
    ways = [(len(way), cell) for cell in sorted(far) if (way := player.router.way(place, cell)) is not None]
    if not ways:
        raise player.complain("no place to hide from a bomb")
    return min(ways)[1]


def _direction(cell: Cell) -> str:
    """Towards the edge on which a door is."""
    column, row = cell
    return {0: "up", 7: "down"}.get(row) or ("left" if column == 0 else "right")


def _before(cell: Cell) -> Cell:
    """The cell from which one pushes against a door."""
    dx, dy = STEPS[_direction(cell)]
    return cell[0] - dx, cell[1] - dy
