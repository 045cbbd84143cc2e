"""The manifest of an export, and its file names, which follow the original system so that its users find them."""

from typing import Annotated, Final

from pydantic import Field

from shared.contracts.base import Contract
from shared.contracts.ids import Digest
from shared.contracts.segment import STATES, SegmentManifest

MANIFEST: Final = "manifest.json"
VIDEO: Final = "video.mp4"
SAVED_STATE: Final = "step_0.state"
"""The emulator's state at the segment's start, as PyBoy loads it (the archive's is that of the episode's start)."""
POTENTIAL: Final = "potential.json"
"""Phi of each state, before the first step and after each, by the reward model that shaped the segment."""

__all__ = ["MANIFEST", "POTENTIAL", "SAVED_STATE", "STATES", "VIDEO", "ExportManifest", "frame_name"]


def frame_name(step: int) -> str:
    """File name of the picture after `step` steps of the segment."""
    return f"frames/frame_{step:06d}.png"


class ExportManifest(Contract):
    """Commit object of `segment.exported`, written last: every file that it lists exists."""

    segment: SegmentManifest
    archive: Digest = Field(description="SHA-256 of the segment archive that was replayed")
    frames: int = Field(ge=0, description="number of pictures in frames/, one per step")
    caption: list[Annotated[str, Field(max_length=200)]] = Field(max_length=10, description="lines under the video")
    files: dict[Annotated[str, Field(max_length=60)], Digest] = Field(description="SHA-256 of every other file")
