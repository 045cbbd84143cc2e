"""The true start of a game: the first moment of control after power-on or after the user's state."""

from dataclasses import replace

import pytest

from bramble.registration import bramble_game
from shared.errors import Permanent
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.names import ACTIONS
from shared.game.decoding.state import GameState
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import begin_episode, continue_episode, true_start
from shared.game.games.game import Game

GARDEN = bramble_game("garden")


def after(action: str, steps: int) -> bytes:
    """The garden as it is when a button was held from its own start."""
    emulator = Emulator(GARDEN)
    emulator.load(true_start(GARDEN).state)
    for _ in range(steps):
        emulator.step(ACTIONS.index(action), 4)
    state = emulator.save()
    emulator.close()
    return state


def seen(game: Game, state: bytes) -> GameState:
    emulator = Emulator(game)
    emulator.load(state)
    found = Decoder(game.capabilities).decode(emulator.image())
    emulator.close()
    return found


def test_state_of_the_user_is_the_true_start() -> None:
    own = seen(GARDEN, true_start(GARDEN).state)
    walked = after("right", 10)
    start = true_start(replace(GARDEN, start=walked))
    there = seen(GARDEN, start.state)
    assert start.name == "start"
    assert there.control
    assert (there.x, there.y) == (seen(GARDEN, walked).x, own.y) != (own.x, own.y)


def test_start_state_without_control_is_refused_with_its_setting() -> None:
    with pytest.raises(Permanent, match="its start state: set ZELDA_DRIVER__START_STATE to a saved state"):
        true_start(replace(GARDEN, start=after("start", 10)))  # the menu is open, and no button closes it


def test_invalid_start_state_is_refused_with_its_setting() -> None:
    with pytest.raises(Permanent, match=r"set ZELDA_DRIVER__START_STATE to a state .* 8 bytes does not load"):
        true_start(replace(GARDEN, start=b"no state"))


@pytest.mark.parametrize("torn", [False, True])
def test_an_episode_that_is_continued_takes_the_same_course(torn: bool) -> None:
    """Also in a game that has to run until its RAM is at rest: those frames are no part of the episode."""
    game = bramble_game("garden", torn=torn)
    actions = [ACTIONS.index(name) for name in ("right", "up", "a", "left", "left", "wait", "down", "right")] * 4
    emulator = Emulator(game)
    begin_episode(emulator, true_start(game).state, 5)
    for action in actions[:9]:
        emulator.step(action, 4)
    before, left = emulator.save(), emulator.take()[0]
    for action in actions[9:]:
        emulator.step(action, 4)
    whole = emulator.ram_hash()
    continue_episode(emulator, before)
    image, at_rest = emulator.take()
    decoder = Decoder(game.capabilities)
    assert (at_rest, decoder.decode(image).key) == (True, decoder.decode(left).key)
    for action in actions[9:]:
        emulator.step(action, 4)
    assert emulator.ram_hash() == whole
    emulator.close()
