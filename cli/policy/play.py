"""Plays a game with a policy."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cli.policy.policy_file import Policy
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import EpisodeRecorder, EpisodeReport, GameSession, StepResult
from services.trainer.recording.builder import CompletedSegment
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.recorder import SegmentRecorder
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """How to play. `best` takes the best action of each step; otherwise actions are drawn from the policy."""

    steps: int
    best: bool = False
    seed: int = 0
    window: bool = False
    rom: Path | None = None
    start: Path | None = None


class _EveryStep:
    """A recorder that has every step drawn and stores nothing."""

    def begin_episode(self, session: GameSession) -> None:
        """Nothing to record."""

    def needs_picture(self, step: int) -> bool:
        """Every step is drawn."""
        return True

    def add_step(self, session: GameSession, result: StepResult) -> None:
        """Nothing to record."""


class PlayedEpisode:
    """One episode from the game's true start. Iterate to play it; `report` is its result afterwards. Equal every time.

    Pictures are RGB, uint8 (144, 160, 3), one per step. They are not kept: 10,000 would take 700 MB.
    """

    def __init__(self, policy: Policy, config: RunConfig, options: PlayOptions) -> None:
        more: dict[str, Any] = {"rom": options.rom, "true_start": options.start, "num_envs": 1}
        env = EnvConfig.of_run(config, **more)
        self._env = env.model_copy(update={"episode_length": options.steps, "seed": options.seed})
        self._policy, self._options = policy, options
        self.report: EpisodeReport | None = None

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        """Play and yield each picture."""
        for session in self._play(_EveryStep()):
            yield session.picture()

    def finish(self) -> EpisodeReport:
        """Play to the end, drawing nothing; return the result."""
        deque(self._play(None), maxlen=0)
        assert self.report is not None  # the play ends with it
        return self.report

    def segments(self, run: RunId, epoch: int) -> list[CompletedSegment]:
        """Play and return the segments of the episode, as the recorder of this run makes them."""
        found: list[CompletedSegment] = []
        settings = RecordingConfig(run=run, epoch=epoch, store=StoreSettings(url="memory://"))
        deque(self._play(SegmentRecorder(self._env, settings, 0, found.append)), maxlen=0)
        return found

    def _play(self, recorder: EpisodeRecorder | None) -> Iterator[GameSession]:
        """Play the episode from its start; yield the session after each step."""
        options, rng = self._options, np.random.default_rng(self._options.seed)
        session = GameSession(self._env, recording=recorder, window="SDL2" if options.window else "null")
        self.report = None
        try:
            observation, memory = session.reset(), self._policy.first_memory()
            while self.report is None:
                logits, memory = self._policy.step(observation, memory)
                result = session.step(_choose(logits, rng, options.best))
                observation, self.report = result.observation, result.report
                yield session
        finally:
            session.close()


def _choose(logits: NDArray[np.float32], rng: np.random.Generator, best: bool) -> int:
    """The best action, or one drawn from the softmax: adding Gumbel noise and taking the best samples it exactly."""
    return int((logits if best else logits + rng.gumbel(size=len(logits))).argmax())
