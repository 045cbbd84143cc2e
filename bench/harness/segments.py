"""Real Bramble segments for benchmarks: played by the solver, at random, and by mixtures of both.

`play` drives a session of the training environment and its recorder, so the archives are those of a real run.
"""

import io
import zipfile

import numpy as np

import bramble
from bramble.solver.walker import StuckError, Walker
from bramble.solver.walkthrough import play_with
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.recorder import SegmentRecorder
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId, SegmentId
from shared.contracts.segment import MANIFEST, SegmentManifest
from studies.gate.solver_play import UNLIMITED, EpisodeEnded
from studies.judges.play import PlayStyle, WanderingButtons

RUN = RunId("bench")


def play(world: str, steps: int, wandering: float | None, seed: int, segment_steps: int = 300) -> list[bytes]:
    """Archives of one episode of at most `steps` steps. `wandering` is the share of random steps; None means all."""
    config = EnvConfig(world=world, seed=seed, segment_steps=segment_steps, episode_length=steps)
    recording = RecordingConfig(run=RUN, epoch=0, store=StoreSettings(url="memory://"))
    archives: list[bytes] = []
    recorder = SegmentRecorder(
        config, recording, seed % 1000, lambda segment: archives.append(segment.archive("share"))
    )
    session = GameSession(config, recording=recorder)
    share = wandering or 0.0
    try:
        session.reset()
        buttons = WanderingButtons(
            session, PlayStyle("bench", wandering=(share, share), hold=1), np.random.default_rng(seed)
        )
        if wandering is not None:
            play_with(world, Walker(buttons, bramble.world(world), limit=UNLIMITED))
        buttons.wander(steps)  # the solver is done: fill the episode at random
    except (EpisodeEnded, StuckError):
        pass
    finally:
        session.close()
    return archives


def renamed(raw: bytes, segment: str, **place: object) -> bytes:
    """The same recording under another segment id; `place` may name another run, epoch and episode as well."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename == MANIFEST:
                names = {"segment": SegmentId(segment), **place}
                data = SegmentManifest.from_bytes(data).model_copy(update=names).to_bytes()
            new.writestr(info, data)
    return out.getvalue()
