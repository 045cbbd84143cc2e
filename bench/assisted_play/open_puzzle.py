"""A start state beside the button of the garden's bower: a room with an open puzzle, where a planner takes over."""

from typing import Final

from services.trainer.env.game_session import GameSession
from shared.game.emulator.start import StartState
from shared.game.ram.variables import entries

BOWER: Final = (0, 0x02, 0x64)  # group, room, row and column of the hero
ARRIVAL: Final = 8  # steps until the room has scrolled in


def beside_the_button(session: GameSession) -> StartState:
    """The state, made in this session of the garden, which must be reset afterwards."""
    for name, value in zip(("group", "room", "pos"), BOWER, strict=True):
        session.emulator.poke(entries()[f"warp_dest_{name}"].address, value)
    session.emulator.poke(entries()["warp_trigger"].address, 1)
    for _ in range(ARRIVAL):
        session.emulator.step(0, 4)
    return StartState("bower", session.emulator.save())
