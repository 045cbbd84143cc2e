"""An episode continues from a saved state with what it remembers: known rooms and events do not count again."""

from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
import pytest

from bramble.registration import bramble_game
from shared.errors import ContractError
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.state import GameState
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import begin_episode, true_start
from shared.game.observation.counters import EpisodeCounters
from shared.game.observation.episode_memory import EpisodeMemory
from shared.game.observation.trace import EpisodeTrace

STEPS: Final = 900
CUTS: Final = (0, 1, 250, 600, STEPS - 1)


@cache
def play() -> list[tuple[GameState, int]]:
    """States of the garden under held random buttons, each with the action that led to it."""
    game = bramble_game("garden")
    emulator, decoder = Emulator(game), Decoder(game.capabilities)
    begin_episode(emulator, true_start(game).state, 7)
    states = [(decoder.begin(emulator.image()), 0)]
    for action in np.repeat(np.random.default_rng(5).integers(1, 7, STEPS // 6), 6).tolist():
        emulator.step(action, 4)
        image, fresh = emulator.take()
        states.append((decoder.decode(image, fresh), action))
    emulator.close()
    return states


def begin(state: GameState) -> tuple[EpisodeTrace, EpisodeCounters]:
    trace = EpisodeTrace(state)
    return trace, EpisodeCounters(state, trace, bramble_game("garden").capabilities)


def follow(trace: EpisodeTrace, counters: EpisodeCounters, states: list[tuple[GameState, int]]) -> None:
    for (previous, _), (state, action) in pairwise(states):
        trace.step(state, action)
        counters.step(previous, state, trace)


@pytest.mark.parametrize("cut", CUTS)
def test_a_continued_episode_counts_as_if_it_had_never_stopped(cut: int) -> None:
    states = play()
    whole = begin(states[0][0])
    follow(*whole, states)
    first = begin(states[0][0])
    follow(*first, states[: cut + 1])
    memory = EpisodeMemory.from_bytes(EpisodeMemory.of(*first).to_bytes())
    continued = begin(states[cut][0])
    memory.restore(*continued)
    assert continued[1].packed == first[1].packed
    follow(*continued, states[cut:])
    assert continued[1].values == whole[1].values
    assert (continued[0].rooms, continued[0].tiles) == (whole[0].rooms, whole[0].tiles)


def test_the_play_of_these_tests_sees_rooms_and_tiles() -> None:
    trace, counters = begin(play()[0][0])
    follow(trace, counters, play())
    assert len(trace.rooms) > 1
    assert counters.values["tiles"] > 10


def test_a_known_room_is_not_new_after_a_restart() -> None:
    states = play()
    earlier = begin(states[0][0])
    follow(*earlier, states)
    again = begin(states[0][0])
    EpisodeMemory.of(*earlier).restore(*again)
    again[0].step(states[1][0], 1)
    assert not again[0].new_room
    assert not again[0].new_tile


@pytest.mark.parametrize("data", [b"", b"no memory", EpisodeMemory.of(*begin(play()[0][0])).to_bytes()[:-20]])
def test_a_damaged_memory_is_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(ContractError, match="an episode's memory"):
        EpisodeMemory.from_bytes(data)


def test_a_tile_that_the_hero_jumps_over_was_not_stood_on() -> None:
    state, _ = play()[0]
    trace = EpisodeTrace(state)
    ahead = state._replace(x=state.x + 16)
    trace.step(ahead._replace(airborne=True), 4)
    assert not trace.new_tile
    trace.step(ahead, 4)
    assert trace.new_tile
