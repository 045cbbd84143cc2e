"""Plays any proven world to its end by buttons alone: it carries out the plan of proof.py, deed by deed."""

from bramble.model import Cell, World
from bramble.proof import BUTTON, Deed, cells_with, prove
from bramble.route import STEPS
from bramble.walk import Player


def follow(player: Player, world: World) -> None:
    """Do all deeds of the world's plan. StuckError when one cannot be done; blocks on switches are beyond it."""
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
        player.travel(deed.place, _before(deed.cell))
        player.open_door(_direction(deed.cell), deed.cell)
    elif deed.kind == "clear":
        player.travel(deed.place)
        player.clear_room()
    else:
        for cell in cells_with(player.world.rooms[deed.place], BUTTON):
            player.travel(deed.place, cell)


def _direction(cell: Cell) -> str:
    """Towards the edge on which a door is."""
    column, row = cell
    return {0: "up", 7: "down"}.get(row) or ("left" if column == 0 else "right")


def _before(cell: Cell) -> Cell:
    """The cell from which one pushes against a door."""
    dx, dy = STEPS[_direction(cell)]
    return cell[0] - dx, cell[1] - dy
