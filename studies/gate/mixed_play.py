"""Records episodes of mixed play: the solver up to a random moment, then random buttons.

The solver's prefix strays at random, so that its ways differ from episode to episode. The recorder, the segments and
their archives are those of a training run.
"""

import asyncio
from dataclasses import dataclass

import numpy as np

import bramble
from bramble.solver.walker import StuckError
from bramble.solver.walkthrough import play_with
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.recording.builder import CompletedSegment
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.recorder import SegmentRecorder
from shared.config.settings import StoreSettings
from shared.contracts.epoch import SegmentRef
from shared.contracts.ids import Digest, RunId
from shared.store.port import Store
from studies.gate.solver_play import DetourWalker, EpisodeEnded, SessionButtons

RUN = RunId("gate")
SEGMENT_STEPS = 100  # a third of a run's: the walk-through of the garden takes only 313 steps
RANDOM_STEPS = 200  # after the solver's prefix
MAX_PRESS = 12  # steps for which random play holds a button
DETOURS = 0.3  # share of the solver's ways that begin with a random walk
BUTTONS = 7  # all but START


@dataclass(frozen=True, slots=True)
class PlayPlan:
    """How many episodes are played, and the seed of their games, which must differ from the evaluated walk's."""

    episodes: int
    seed: int


class MixedPlay:
    """Plays one world and keeps every segment in a store."""

    def __init__(self, world: str, plan: PlayPlan, store: Store, walk_steps: int) -> None:
        """`walk_steps` is the approximate length of the world's walk-through."""
        self._world, self._plan, self._store, self._walk_steps = bramble.world(world), plan, store, walk_steps
        self._name = world
        self._rng = np.random.default_rng([plan.seed, len(world)])
        self._completed: list[CompletedSegment] = []
        config = gate_environment(world, plan.seed)
        settings = RecordingConfig(run=RUN, epoch=0, store=StoreSettings(url="memory://"))
        recorder = SegmentRecorder(config, settings, 0, self._completed.append)
        self._session = GameSession(config, recording=recorder)

    async def record(self) -> list[SegmentRef]:
        """Play all episodes; return the segments that are in the store now."""
        references: list[SegmentRef] = []
        try:
            for number in range(self._plan.episodes):
                await asyncio.to_thread(self._play_episode, number)
                references += [await self._write(segment) for segment in self._completed]
                self._completed.clear()
        finally:
            self._session.close()
        return references

    async def _write(self, segment: CompletedSegment) -> SegmentRef:
        digest = await self._store.put(segment.key, segment.archive("share"))
        return SegmentRef(
            segment=segment.name, episode=segment.facts["episode"], key=segment.key, digest=Digest(digest)
        )

    def _play_episode(self, number: int) -> None:
        """Let the solver play a part of the walk; a third of the episodes end with the world."""
        share = 1.5 * (number + self._rng.random()) / self._plan.episodes
        limit = int(share * self._walk_steps)
        self._session.reset()
        try:
            self._play_prefix(limit)
            self._play_at_random()
        except EpisodeEnded:
            return

    def _play_prefix(self, limit: int) -> None:
        walker = DetourWalker(SessionButtons(self._session), self._world, DETOURS, int(self._rng.integers(2**31)))
        walker.limit = limit
        try:
            play_with(self._name, walker)
        except StuckError:  # the limit, or a random walk pushed a block to where it cannot be moved
            return

    def _play_at_random(self) -> None:
        buttons = SessionButtons(self._session)
        words = bramble.emulator.ACTIONS[:BUTTONS]
        while buttons.steps < RANDOM_STEPS:
            word = words[int(self._rng.integers(BUTTONS))]
            for _ in range(int(self._rng.integers(1, MAX_PRESS + 1))):
                buttons.step(word)


def gate_environment(world: str, seed: int) -> EnvConfig:
    """The environment of all play in the gate. Enemies do no harm: the solver's walk must not end by chance."""
    return EnvConfig.of(
        {
            "world": world,
            "difficulty": "harmless",
            "seed": seed,
            "segment_steps": SEGMENT_STEPS,
            "episode_length": 1_000_000,
        }
    )
