"""Settings of the exporter service. Imports nothing heavy."""

from pydantic import Field

from services.exporter.domain.policy import ExportPolicy
from shared.config.settings import RomSettings, ServiceSettings, SettingsGroup


class ExportGroup(SettingsGroup):
    """Which segments are exported, and into which files."""

    policy: ExportPolicy = Field(ExportPolicy.MILESTONES, description="all, judged, top, milestones or none")
    top_k: int = Field(5, ge=1, le=10_000, description="with policy top: the approximate number of exports per epoch")
    slots: int = Field(1, ge=1, le=64, description="parallel replays; each occupies a core for a second or more")
    frames: bool = Field(True, description="write one PNG per step (about 1 MB per segment)")
    video: bool = Field(True, description="write video.mp4")
    scale: int = Field(3, ge=1, le=8, description="factor by which the video enlarges 160x144 pixels")
    overlay: bool = Field(True, description="show milestones and scores under the video")


class ExporterSettings(ServiceSettings):
    """Everything that the exporter reads from its environment."""

    export: ExportGroup = Field(default_factory=ExportGroup)  # ZELDA_EXPORT__POLICY
    rom: RomSettings = Field(default_factory=RomSettings)  # ZELDA_ROM__FILE
