"""Settings of the exporter service. Imports nothing heavy."""

from pydantic import Field

from services.exporter.domain.policy import ExportPolicy
from shared.runtime.settings import Group, RomSettings, ServiceSettings


class ExportGroup(Group):
    """What is exported, and how it looks."""

    policy: ExportPolicy = Field(ExportPolicy.MILESTONES, description="all, judged, top, milestones or none")
    top_k: int = Field(5, ge=1, le=10_000, description="with policy top: exports per epoch, about")
    slots: int = Field(1, ge=1, le=64, description="replays at once: each keeps one core busy for a second or more")
    frames: bool = Field(True, description="write a PNG for every step (about 1 MB a segment)")
    video: bool = Field(True, description="write video.mp4")
    scale: int = Field(3, ge=1, le=8, description="the video's enlargement of 160x144 pixels")
    overlay: bool = Field(True, description="put milestones and scores under the video")


class ExporterSettings(ServiceSettings):
    """What the exporter reads."""

    export: ExportGroup = Field(default_factory=ExportGroup)  # ZELDA_EXPORT__POLICY
    rom: RomSettings = Field(default_factory=RomSettings)  # ZELDA_ROM__FILE
