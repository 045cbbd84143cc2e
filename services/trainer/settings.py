"""Settings of the trainer service and of its drivers. Imports nothing heavy."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from services.trainer.domain.curriculum import CurriculumShares
from services.trainer.planning.planner_file import load_planner_file
from shared.config.settings import HttpUrl, ReadableFile, ServiceSettings, SettingsGroup

LearnerDevice = Literal["cpu", "cuda"]


class TrainerGroup(SettingsGroup):
    """How drivers are started and supervised."""

    backend: Literal["local", "ray_jobs"] = Field(
        "local", description="where drivers run: a child process, or a Ray job"
    )
    ray_address: HttpUrl | None = Field(None, description="Ray's job server, e.g. http://ray-head:8265 (ray_jobs)")
    ray_token_file: ReadableFile | None = Field(None, description="file with the job server's bearer token")
    attempts: int = Field(5, ge=1, le=100, description="consecutive driver failures before the run fails")
    max_drivers: int = Field(8, ge=1, le=1_000, description="drivers that run at a time; further runs wait for a place")
    announce_s: float = Field(1.0, gt=0, le=60, description="seconds between two polls for new segments")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.backend == "ray_jobs" and self.ray_address is None:
            raise ValueError("backend ray_jobs needs ray_address: set it to Ray's job server")
        return self


class DriverGroup(SettingsGroup):
    """How a driver trains, beside the run's configuration."""

    idle_s: float = Field(900.0, ge=1, le=86_400, description="seconds without an order after which a driver exits")
    ray_address: str | None = Field(None, description="Ray cluster of the env runners; default: a local Ray")
    ray_cpus: int | None = Field(None, ge=1, le=10_000, description="CPUs of a local Ray; default: env runners + 2")
    learner_device: LearnerDevice = Field(
        "cpu", description="where gradients are computed; `cuda` needs a GPU and an image with CUDA's torch"
    )
    rom: ReadableFile | None = Field(None, description="the user's own ROM image, for games that need one")
    start_state: ReadableFile | None = Field(
        None,
        description="saved state of that ROM that episodes start from, with a hero who can walk; Bramble ignores it",
    )
    planner_file: ReadableFile | None = Field(
        None, description="YAML with the routes of planner and guidance; default: the built-in ones at planner_url"
    )
    planner_url: HttpUrl = Field(
        "http://127.0.0.1:8089/v1", description="address of the built-in routes; unused with a planner file"
    )
    curriculum: list[float] = Field(
        default_factory=list,
        max_length=64,
        description="share of episodes that start after milestone 1, 2, ...: sum <= 0.5",
    )

    @field_validator("planner_file")
    @classmethod
    def _check_planner(cls, value: Path | None) -> Path | None:
        if value is not None:
            load_planner_file(value, "")
        return value

    @field_validator("curriculum")
    @classmethod
    def _fair(cls, curriculum: list[float]) -> list[float]:
        """Refuse wrong shares here instead of in every env runner."""
        CurriculumShares(tuple(curriculum))
        return curriculum


class TrainerSettings(ServiceSettings):
    """Settings of the trainer service."""

    trainer: TrainerGroup = Field(default_factory=TrainerGroup)
    driver: DriverGroup = Field(default_factory=DriverGroup)


class DriverSettings(TrainerSettings):
    """Settings of a driver: those of the service, whose environment it inherits. It has no use for `trainer`."""
