"""Real Bramble segments for benchmarks: played by the solver, at random, and by mixtures of both.

`play` drives the training environment and its recorder, so the archives are those of a real run.
"""

import io
import random
import zipfile
from collections.abc import Callable

import bramble
from bramble.emulator import ACTIONS, BrambleEmulator
from bramble.solver.walker import StuckError, Walker
from bramble.solver.walkthrough import WALKTHROUGHS
from services.trainer.env.config import EnvConfig
from services.trainer.env.env import ZeldaEnv
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.recorder import SegmentRecorder
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId, SegmentId
from shared.contracts.segment import MANIFEST, SegmentManifest

RUN = RunId("bench")


class _EpisodeOver(Exception):
    """The episode ended or reached its step limit."""


class _InEnvironment(BrambleEmulator):
    """Connects the solver with the training environment and replaces a share of its steps by random ones."""

    def __init__(self, env: ZeldaEnv, wandering: float, limit: int, seed: int) -> None:
        self.env, self.pyboy = env, env.session.emulator._pyboy  # read only: the solver reads RAM
        self.steps, self.limit = 0, limit
        self._wandering, self._rng = wandering, random.Random(seed)

    def step(self, action: str) -> None:
        if self._rng.random() < self._wandering / 20:  # a random walk of about twenty steps
            for _ in range(self._rng.randrange(5, 36)):
                self.step_at_random()
        self.do(action)

    def step_at_random(self) -> None:
        """One step with a random button except START."""
        self.do(self._rng.choice(ACTIONS[:7]))

    def do(self, action: str) -> None:
        """One step of the environment."""
        if self.steps >= self.limit:
            raise _EpisodeOver
        self.steps += 1
        *_, terminated, truncated, _ = self.env.step(ACTIONS.index(action))
        if terminated or truncated:
            raise _EpisodeOver


def play(world: str, steps: int, wandering: float | None, seed: int, segment_steps: int = 300) -> list[bytes]:
    """Archives of one episode of at most `steps` steps. `wandering` is the share of random steps; None means all."""
    config = EnvConfig(world=world, seed=seed, segment_steps=segment_steps, episode_length=steps)
    recording = RecordingConfig(run=RUN, epoch=0, store=StoreSettings(url="memory://"))
    archives: list[bytes] = []
    recorder = SegmentRecorder(
        config, recording, seed % 1000, lambda segment: archives.append(segment.archive("share"))
    )
    env = ZeldaEnv(config, recording=recorder)
    env.reset()
    game = _InEnvironment(env, wandering or 0.0, steps, seed)
    try:
        _course(world, wandering)(game)
        while True:  # the solver is done: fill the episode at random
            game.step_at_random()
    except (_EpisodeOver, StuckError):
        pass
    finally:
        env.close()
    return archives


def _course(world: str, wandering: float | None) -> Callable[[_InEnvironment], None]:
    if wandering is None or world not in WALKTHROUGHS:
        return lambda game: None
    return lambda game: WALKTHROUGHS[world](Walker(game, bramble.world(world), limit=10**9))


def renamed(raw: bytes, segment: str) -> bytes:
    """The same recording under another segment id."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename == MANIFEST:
                manifest = SegmentManifest.from_bytes(data).model_copy(update={"segment": SegmentId(segment)})
                data = manifest.to_bytes()
            new.writestr(info, data)
    return out.getvalue()
