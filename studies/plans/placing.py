"""Puts the hero on a tile of any room, as a warp of the game does."""

from typing import Final

from services.trainer.env.game_session import GameSession
from services.trainer.executor.macros import Tile
from shared.game.decoding.state import RoomKey
from shared.game.emulator.emulator import Emulator
from shared.game.ram.variables import entries

FLOOR: Final = frozenset(".,f:_%/R")
"""Letters of Bramble's tiles that the hero can stand on."""
ARRIVAL: Final = 40  # steps until the room has scrolled in and the hero listens
WARPING: Final = 2  # steps in which the old room may still be shown


def warp(emulator: Emulator, room: RoomKey, tile: Tile) -> None:
    """Order the game to bring the hero there; it takes some frames."""
    values = {"group": room[0], "room": room[1], "pos": tile[1] << 4 | tile[0]}
    for name, value in values.items():
        emulator.poke(entries()[f"warp_dest_{name}"].address, value)
    emulator.poke(entries()["warp_trigger"].address, 1)


def put(session: GameSession, room: RoomKey, tile: Tile) -> bool:
    """Bring the hero there and wait until the game listens to him; False if it does not."""
    warp(session.emulator, room, tile)
    for waited in range(ARRIVAL):
        session.step(0)
        if waited > WARPING and session.state.key == room and session.state.control:
            return True
    return False
