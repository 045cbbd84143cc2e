"""A game that updates after the picture is drawn, as commercial games do, is read at rest.

The engine can be built both ways. Truth is the build that rests whenever the emulator returns: with the same buttons,
both builds make the same updates, the torn one sees a button one update later. So a state read from the torn build is
consistent exactly if the resting build was in that state after some update.
"""

import random
from functools import cache

import pytest

from bramble.registration import bramble_game
from services.trainer.env.game_session import GameSession, StepResult
from shared.game.decoding.decoder import Decoder
from shared.game.emulator.emulator import Emulator
from shared.game.games.game import Game
from shared.game.ram.variables import read_number
from shared.game.recording.state_rows import StateRowWriter
from tests.unit.env.scripted_play import solve

STEPS = 10_000
SKIP = 4
SETTLED = 20  # updates after the load until both builds are compared


def _facts(decoder: Decoder, image: bytes) -> str:
    """Everything decoded, with the game's own count of updates, but the events: they depend on when one looked last."""
    state = decoder.decode(image)
    return f"{read_number(image, 'frame_counter')} {StateRowWriter().line(state._replace(sounds=()), 0, 0)}"


@cache
def _crowded() -> tuple[bytes, int]:
    """A moment of the vale with as many enemies as it has, where updates take long, and its play time."""
    best: tuple[int, bytes, int] = (0, b"", 0)

    def observe(session: GameSession, action: int, outcome: StepResult) -> None:
        nonlocal best
        enemies = len(session.state.enemies)
        if enemies > best[0] and session.state.control:
            best = enemies, session.emulator.save(), read_number(session.image, "play_time")

    solve("vale", observe)
    return best[1:]


def _started(torn: bool) -> tuple[Game, Emulator]:
    """Both builds in the same room, after as many updates, seeded alike."""
    state, time = _crowded()
    game = bramble_game("vale", difficulty="harmless", torn=torn)
    emulator = Emulator(game)
    emulator.actions = "actions/v1"  # the truth is played frame by frame, and a press has no half a frame
    emulator.load(state)
    emulator.warm_up(1)
    while (now := read_number(emulator.image(), "play_time")) < time + SETTLED:
        emulator.warm_up(1)
    assert now == time + SETTLED
    emulator.seed(1234)
    return game, emulator


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_states_at_rest_are_consistent_and_naive_reads_are_not() -> None:
    rng = random.Random(7)
    actions = [rng.randrange(7) for _ in range(STEPS // 8) for _ in range(8)]
    game, torn = _started(torn=True)
    decoder = Decoder(game.capabilities)
    read: list[tuple[int, str, str]] = []
    for action in actions:
        torn.step(action, SKIP)
        naive, (image, fresh) = torn.naive_image(), torn.take()
        assert fresh
        read.append((read_number(image, "play_time"), _facts(decoder, image), _facts(decoder, naive)))

    truth = _truth(actions, [time for time, *_ in read])
    wrong = sum(facts != truth[time] for time, facts, _ in read)
    wrong_naive = sum(naive not in (truth[time], truth[time + 1]) for time, _, naive in read)

    assert wrong == 0, f"{wrong} of {STEPS} states read at rest are inconsistent"
    assert wrong_naive > 100, f"only {wrong_naive} of {STEPS} naive reads are torn: the debug switch does nothing"


def _truth(actions: list[int], times: list[int]) -> dict[int, str]:
    """Decoded state after each update of the resting build.

    The play time identifies an update. Loading a room may cost one build a frame more than the other, so each action
    is held until the resting build has made as many updates as the torn one had, and one more: it sees buttons later.
    """
    game, rest = _started(torn=False)
    decoder = Decoder(game.capabilities)
    states: dict[int, str] = {}
    for action, until in zip([0, *actions], [_crowded()[1] + SETTLED, *times], strict=True):
        now = read_number(rest.image(), "play_time")
        while now <= until:
            rest.step(action, 1)
            image = rest.image()
            now = read_number(image, "play_time")
            states[now] = _facts(decoder, image)
    return states
