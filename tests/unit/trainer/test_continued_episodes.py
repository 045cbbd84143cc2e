"""An episode that goes on from a saved state misses nothing that happens before its first step.

The game runs for two frames between load and first step. What it gives the hero in them is gained in this episode.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import pytest

import bramble
from bramble.solver.walker import Walker
from bramble.solver.walkthrough import play_with
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from shared.game.decoding.names import ACTIONS
from shared.game.emulator.start import StartState, true_start
from shared.game.observation.episode_memory import EpisodeMemory
from studies.gate.solver_play import UNLIMITED, EpisodeEnded, SessionButtons

pytestmark = pytest.mark.filterwarnings("ignore:Using SDL2 binaries")
SEED = 5
STEP = 4  # frames


def session_of(frame_skip: int) -> GameSession:
    config = {"world": "garden", "frame_skip": frame_skip, "episode_length": 10_000}
    session = GameSession(EnvConfig.of(config))
    session.begin(true_start(session.game), SEED)
    return session


def walk() -> list[int]:
    """What the solver presses in each frame, up to the end. A tapped button is released in the middle of its step."""
    session = session_of(STEP)
    with suppress(EpisodeEnded):
        play_with("garden", Walker(SessionButtons(session), bramble.world("garden"), limit=UNLIMITED))
    session.close()
    tapped = [ACTIONS.index(button) for button in ("a", "b", "start")]
    halves = [(action, 0 if action in tapped else action) for action in session.episode.actions]
    return [button for half in halves for button in half for _ in range(STEP // 2)]


class Found:
    """The states one frame before the hero owns one thing more, with what he owns then."""

    def __init__(self) -> None:
        self.session = session_of(1)
        self.starts: list[StartState] = []
        buttons = walk()
        items = [self._items_after(button) for button in buttons]
        gains = {frame for frame, (before, after) in enumerate(pairwise([0, *items])) if after > before}
        self.session.begin(true_start(self.session.game), SEED)
        for frame, button in enumerate(buttons):
            if frame in gains:
                memory = EpisodeMemory.of(self.session.trace, self.session.counters).to_bytes()
                self.starts.append(StartState("here", self.session.emulator.save(), memory))
            self.session.step(button)

    def _items_after(self, button: int) -> int:
        self.session.step(button)
        return self.session.counters.values["items"]


@pytest.fixture(scope="module")
def found() -> Iterator[Found]:
    made = Found()
    yield made
    made.session.close()


def test_what_the_hero_gets_before_the_first_step_counts(found: Found) -> None:
    session, counted = found.session, []
    for start in found.starts:
        session.begin(start, SEED)
        counted.append(session.counters.values["items"])
    assert counted == [1, 2], "the sword and the bower's essence"
    assert session.counters.values["essences"] == 1


def test_a_game_that_is_won_before_the_first_step_is_finished(found: Found) -> None:
    found.session.begin(found.starts[-1], SEED)
    report = found.session.step(0).report
    assert report is not None
    assert report.finished
