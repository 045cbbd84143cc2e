"""Settings that record every segment, and write jobs for the queue alone."""

from pathlib import Path

from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.queue import WriteJob
from shared.config.settings import StoreSettings
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.contracts.run import SamplingConfig
from shared.store import keys

RUN = RunId("test")
EPISODE = EpisodeId("e0003-r00-v00-0000")


def every_segment(folder: Path, slots: int = 64) -> RecordingConfig:
    """Record every segment into a directory store."""
    return RecordingConfig(
        run=RUN,
        epoch=3,
        store=StoreSettings(url=f"file://{folder}"),
        sampling=SamplingConfig(share=1.0, budget=100_000),
        epoch_steps=1_000_000,
        slots=slots,
    )


def write_job(number: int) -> WriteJob:
    """A segment whose archive holds nothing but its number."""
    segment = SegmentId(f"{EPISODE}-s{number:03d}")
    return WriteJob(segment, EPISODE, keys.segment(RUN, 3, EPISODE, segment), str(number).encode)
