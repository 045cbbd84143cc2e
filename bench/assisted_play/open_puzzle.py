"""A start state beside the button of the garden's bower: a room with an open puzzle, where a planner takes over."""

from typing import Final

from services.trainer.env.game_session import GameSession
from shared.game.emulator.start import StartState
from studies.plans.placing import warp

BOWER: Final = ((0, 0x02), (4, 6))  # room, and the hero's tile in it
ARRIVAL: Final = 8  # steps until the room has scrolled in


def beside_the_button(session: GameSession) -> StartState:
    """The state, made in this session of the garden, which must be reset afterwards."""
    warp(session.emulator, *BOWER)
    for _ in range(ARRIVAL):
        session.emulator.step(0, 4)
    return StartState("bower", session.emulator.save())
