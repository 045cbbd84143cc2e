"""Real Bramble segments for benchmarks of the judges: played by the solver, by chance, and by mixtures of both.

`play` drives the training environment and its recorder, so that the archives are those of a real run, in memory.
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


class _Enough(Exception):
    """The steps of this episode are used up, or it ended."""


class _InEnvironment(BrambleEmulator):
    """The solver's view of a game that is really the training environment's. Some of its steps are left to chance."""

    def __init__(self, env: ZeldaEnv, wandering: float, limit: int, seed: int) -> None:
        self.env, self.pyboy = env, env.session.emulator._pyboy  # read only: the solver looks at RAM
        self.steps, self.limit = 0, limit
        self._wandering, self._rng = wandering, random.Random(seed)

    def step(self, action: str) -> None:
        if self._rng.random() < self._wandering / 20:  # a walk of chance of about twenty steps
            for _ in range(self._rng.randrange(5, 36)):
                self.by_chance()
        self.do(action)

    def by_chance(self) -> None:
        """One step with any button but START."""
        self.do(self._rng.choice(ACTIONS[:7]))

    def do(self, action: str) -> None:
        """One step of the environment."""
        if self.steps >= self.limit:
            raise _Enough
        self.steps += 1
        *_, terminated, truncated, _ = self.env.step(ACTIONS.index(action))
        if terminated or truncated:
            raise _Enough


def play(world: str, steps: int, wandering: float | None, seed: int, segment_steps: int = 300) -> list[bytes]:
    """Archives of one episode of at most `steps` steps. `wandering` is the share left to chance; None is all."""
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
        while True:  # the solver is done; what is left of the episode is chance
            game.by_chance()
    except (_Enough, StuckError):
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
