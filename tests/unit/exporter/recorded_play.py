"""Records a random walk through the garden into a directory, for the exporter's tests."""

from pathlib import Path
from typing import Any

import numpy as np

from services.trainer.env.config import EnvConfig
from services.trainer.env.vector import ZeldaVectorEnv
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.recorder import RunnerRecorder
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, SamplingConfig
from shared.game.recording.segment import Members, pack_state, read_segment

RUN = RunId("walk")
CONFIG = RunConfig(
    world="garden", seed=3, epoch_steps=600, episode_length=300, segment_steps=60, batch_size=64, envs_per_runner=1
)


def record(directory: Path, steps: int = 130) -> None:
    """Record two segments of a random walk into a store in `directory`."""
    store = StoreSettings(url=f"file://{directory}")
    recording = RecordingConfig(
        run=RUN, epoch=0, store=store, epoch_steps=CONFIG.epoch_steps, sampling=SamplingConfig(share=1.0)
    )
    config = EnvConfig.of_run(CONFIG)
    env = ZeldaVectorEnv(config, recorder=RunnerRecorder(config, recording))
    rng = np.random.default_rng(0)
    env.reset(seed=CONFIG.seed)
    for _ in range(steps):
        env.step(rng.integers(0, 7, 1))
    env.close()


def parts(raw: bytes) -> tuple[dict[str, Any], Members]:
    """The facts and members of a recorded segment, to rebuild it with changes."""
    segment = read_segment(raw)
    members = Members(
        segment.states.splitlines(), segment.observations, segment.actions, segment.prefix,
        pack_state(segment.start_state), segment.frames,
    )  # fmt: skip
    return segment.manifest.model_dump(exclude={"members"}), members
