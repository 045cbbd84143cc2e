"""Plays episodes for the bank: at random, with held buttons, by the solver, and by mixtures of both."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

import bramble
from bramble.emulator import ACTIONS
from bramble.solver.walker import StuckError, Walker
from bramble.solver.walkthrough import play_with
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.recording.builder import CompletedSegment
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.recorder import SegmentRecorder
from shared.config.settings import StoreSettings
from shared.contracts.base import sha256
from shared.contracts.ids import RunId
from studies.gate.solver_play import UNLIMITED, EpisodeEnded, SessionButtons
from studies.judges.bank import SEGMENT_STEPS

Play = Callable[[GameSession], None]

RUN: Final = RunId("bank")
BUTTONS: Final = 7  # all but START
BURST: Final = (5, 36)  # steps of a random walk within the solver's play
BURST_EVERY: Final = 20  # steps, so that `wandering` is about the share of random steps
MAX_EPISODE_STEPS: Final = 4_500


@dataclass(frozen=True, slots=True)
class PlayStyle:
    """A way to play. Ranges are drawn from uniformly, once an episode.

    The solver plays the share `solved` of the world's walk-through, `wandering` of its steps replaced by random walks;
    then `rest` steps follow at random, each press held for up to `hold` steps.
    """

    name: str
    solved: tuple[float, float] = (0.0, 0.0)
    wandering: tuple[float, float] = (0.0, 0.0)
    hold: int = 16
    rest: int = 0


POLICIES: Final = {
    policy.name: policy
    for policy in (
        PlayStyle("random", hold=1, rest=1_200),
        PlayStyle("sticky", rest=1_500),
        PlayStyle("early", (0.05, 0.4), (0.0, 0.4), rest=1_200),
        PlayStyle("late", (0.4, 0.95), (0.0, 0.4), rest=1_200),
        PlayStyle("solver", (1.0, 1.0)),
        PlayStyle("mixture", (1.0, 1.0), (0.1, 0.8)),
    )
}


class WanderingButtons(SessionButtons):
    """The solver's buttons, with random walks between its steps."""

    def __init__(self, session: GameSession, policy: PlayStyle, rng: np.random.Generator) -> None:
        super().__init__(session)
        self._rng, self._hold = rng, policy.hold
        self._chance = rng.uniform(*policy.wandering) / BURST_EVERY

    def step(self, action: str) -> None:
        """Make the solver's step, now and then after a random walk."""
        if self._chance and self._rng.random() < self._chance:
            self.wander(int(self._rng.integers(*BURST)))
        super().step(action)

    def wander(self, steps: int) -> None:
        """Press random buttons for this many steps."""
        until = self.steps + steps
        while self.steps < until:
            word = ACTIONS[int(self._rng.integers(BUTTONS))]
            for _ in range(min(until - self.steps, int(self._rng.integers(1, self._hold + 1)))):
                super().step(word)


@dataclass(frozen=True, slots=True)
class Course:
    """What happened in a segment, in numbers. The digest covers the game's memory at both ends and the progress.

    What a recorder writes about a course changes with its version; the course does not.
    """

    index: int
    steps: int
    gain: int
    digest: str

    @classmethod
    def of(cls, segment: CompletedSegment) -> Self:
        """The course of a recorded segment."""
        content, end, steps = segment.content, segment.end, len(segment.actions)
        progress = f"{steps} {content.start.milestones} {end.milestones}".encode()
        gain = max(0, end.milestones - content.start.milestones)
        return cls(content.index, steps, gain, sha256(content.start.ram + end.ram + progress))


def record(world: str, seed: int, play: Play) -> tuple[bytes, list[CompletedSegment]]:
    """Play one episode; return its actions and its segments, as a run's recorder makes them."""
    config = EnvConfig.of(
        {"world": world, "seed": seed, "segment_steps": SEGMENT_STEPS, "episode_length": MAX_EPISODE_STEPS}
    )
    segments: list[CompletedSegment] = []
    settings = RecordingConfig(run=RUN, epoch=0, store=StoreSettings(url="memory://"))
    session = GameSession(config, recording=SegmentRecorder(config, settings, 0, segments.append))
    try:
        session.reset()
        play(session)
    except EpisodeEnded:
        pass
    finally:
        session.close()
    return bytes(session.episode.actions), segments


def play_policy(
    world: str, policy: PlayStyle, walk_steps: int, rng: np.random.Generator
) -> Callable[[GameSession], None]:
    """Return what plays an episode by this policy. `walk_steps` is the length of the world's walk-through."""
    limit = int(rng.uniform(*policy.solved) * walk_steps) if policy.solved[1] < 1 else UNLIMITED

    def play(session: GameSession) -> None:
        buttons = WanderingButtons(session, policy, rng)
        if limit:
            with suppress(StuckError):  # the limit, or a random walk led to where the solver cannot continue
                play_with(world, Walker(buttons, bramble.world(world), limit=limit))
        if policy.rest:
            buttons.wander(policy.rest)

    return play


def play_actions(actions: bytes) -> Play:
    """Return what plays these actions again."""

    def play(session: GameSession) -> None:
        for action in actions:
            if session.step(action).report is not None:
                return

    return play
