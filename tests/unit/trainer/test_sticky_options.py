"""Options hold their action for some steps; texts and the menu change which ones are drawn."""

from collections import Counter
from functools import cache
from itertools import groupby

import numpy as np
import pytest

from bramble.registration import bramble_game
from services.trainer.executor.outcome import START, A, B, GameView
from services.trainer.exploration.options import MOVES, OptionMix, StickyOptions
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.state import Dialog, GameState
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import true_start

pytestmark = pytest.mark.filterwarnings("ignore:Using SDL2 binaries")
TEXT = Dialog(text=1, line="Hello", waiting=True, choosing=False, choice=None)


@cache
def walking() -> GameState:
    game = bramble_game("garden")
    emulator = Emulator(game)
    emulator.load(true_start(game).state)
    emulator.warm_up(2)
    state = Decoder(game.capabilities).begin(emulator.image())
    emulator.close()
    return state


def actions(state: GameState, seed: int = 0, steps: int = 6_000, mix: OptionMix = OptionMix()) -> list[int]:  # noqa: B008
    options = StickyOptions(np.random.default_rng(seed), mix)
    return [options.next(GameView(state, b"")) for _ in range(steps)]


def test_directions_are_held_and_take_most_of_the_steps() -> None:
    drawn = actions(walking())
    held = [len(list(group)) for action, group in groupby(drawn) if action in MOVES]
    counts = Counter(drawn)
    assert np.mean(held) > 6
    assert 0.75 < sum(counts[one] for one in MOVES) / len(drawn) < 0.9
    assert counts[A] > counts[START] > 0


def test_a_text_is_answered_with_a_and_the_menu_is_closed_with_start() -> None:
    talking = Counter(actions(walking()._replace(dialog=TEXT)))
    in_menu = Counter(actions(walking()._replace(menu=1)))
    assert talking[A] > 0.6 * talking.total()
    assert talking[START] == 0
    assert in_menu[START] > 0.1 * in_menu.total()
    assert in_menu[B] > 0


def test_equal_seeds_draw_equal_actions_and_others_do_not() -> None:
    assert actions(walking(), 5) == actions(walking(), 5)
    assert actions(walking(), 5) != actions(walking(), 6)


def test_an_option_without_weight_is_never_drawn() -> None:
    assert set(actions(walking(), mix=OptionMix(a=0.0, b=0.0, start=0.0, wait=0.0))) == {*MOVES}
