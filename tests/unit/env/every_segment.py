"""A recording of every segment, and a segment for the outbox alone."""

from pathlib import Path

from services.trainer.env.buffers import BufferPool
from services.trainer.env.config import RecordingConfig
from services.trainer.env.outbox import Parcel
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.run import SamplingConfig


def every_segment(folder: Path, slots: int = 64) -> RecordingConfig:
    """The settings of a recording of every segment into a directory store."""
    return RecordingConfig(
        run=RunId("test"),
        epoch=3,
        store=StoreSettings(url=f"file://{folder}"),
        sampling=SamplingConfig(share=1.0, budget=100_000),
        epoch_steps=1_000_000,
        slots=slots,
    )


def parcel_of(pool: BufferPool, number: int) -> Parcel:
    """A segment with nothing in it but its number."""
    buffer = pool.lend()
    assert buffer is not None
    return Parcel({"segment": f"s{number}", "number": number}, buffer)
