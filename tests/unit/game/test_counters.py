"""The reward model's counters: they never fall, they notice every milestone, and nothing that repeats feeds them."""

from functools import cache

import numpy as np
import pytest

from services.trainer.env.game_session import GameSession, StepResult
from shared.game.decoding.decoder import Decoder
from shared.game.observation import counters
from shared.game.observation.counters import INDEX, SIZE, EpisodeCounters
from shared.game.observation.trace import EpisodeTrace
from shared.game.ram import capabilities, offsets
from shared.game.ram.table import IMAGE_SIZE
from tests.unit.env.scripted_play import solve

AROUND = 20  # steps: a milestone's flag and what the player notices of it are a text page apart


@cache
def walk(world: str) -> tuple[np.ndarray, dict[str, int]]:
    """Counts (T, SIZE) along the solver's walk, and the step of each milestone."""
    rows: list[bytes] = []
    reached: dict[str, int] = {}

    def observe(session: GameSession, action: int, result: StepResult) -> None:
        rows.append(session.counters.packed)
        for milestone in session.game.milestones:
            if milestone.name not in reached and milestone.reached(session.image):
                reached[milestone.name] = len(rows) - 1

    solve(world, observe)
    return np.frombuffer(b"".join(rows), "<u2").reshape(-1, SIZE), reached


@pytest.mark.parametrize("world", ["garden", "vale"])
def test_no_counter_ever_falls(world: str) -> None:
    counts, _ = walk(world)
    assert (np.diff(counts.astype(int), axis=0) >= 0).all()


@pytest.mark.parametrize("world", ["garden", "vale"])
def test_every_milestone_raises_a_counter_other_than_tiles(world: str) -> None:
    counts, reached = walk(world)
    others = np.delete(counts.astype(int), INDEX["tiles"], axis=1)
    for name, step in reached.items():
        before, after = others[max(0, step - AROUND)], others[min(len(others) - 1, step + AROUND)]
        assert (after > before).any(), name


def test_a_spent_key_and_paid_money_count_as_progress() -> None:
    counts, _ = walk("vale")
    end = dict(zip(counters.NAMES, counts[-1].tolist(), strict=True))
    assert (end["keys_found"], end["keys_used"], end["payments"]) == (1, 1, 1)


def test_orbs_and_levers_of_a_dungeon_are_counted_once_each() -> None:
    decoder = Decoder(capabilities.all_capabilities())
    image = bytearray(IMAGE_SIZE)
    image[offsets.DUNGEON_INDEX] = 4
    state = decoder.begin(bytes(image))
    trace = EpisodeTrace(state)
    counted = EpisodeCounters(state, trace, capabilities.all_capabilities())
    found = []
    for orbs, levers in ((1, 0), (1, 1), (0, 1), (0, 0), (0, 3)):
        image[offsets.TOGGLE_STATE], image[offsets.SWITCH_STATE] = orbs, levers
        previous, state = state, decoder.decode(bytes(image))
        counted.step(previous, state, trace)
        found.append(counted.values["levers"])
    assert found == [1, 2, 2, 2, 3]
