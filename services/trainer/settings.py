"""Settings of the trainer service and of its drivers. Imports nothing heavy."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from services.trainer.domain.curriculum import CurriculumShares
from shared.config.settings import HttpUrl, ReadableFile, ServiceSettings, SettingsGroup


class TrainerGroup(SettingsGroup):
    """How drivers are started and watched."""

    backend: Literal["local", "ray_jobs"] = Field("local", description="a process beside the service, or a Ray job")
    ray_address: HttpUrl | None = Field(None, description="Ray's job server, e.g. http://ray-head:8265 (ray_jobs)")
    ray_token_file: ReadableFile | None = Field(None, description="file with the job server's bearer token")
    attempts: int = Field(5, ge=1, le=100, description="failures of a driver in a row before the run is given up")
    announce_s: float = Field(1.0, gt=0, le=60, description="seconds between two looks for new segments")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.backend == "ray_jobs" and self.ray_address is None:
            raise ValueError("backend ray_jobs needs ray_address: set it to Ray's job server")
        return self


class DriverGroup(SettingsGroup):
    """How a driver trains, beyond what the run says."""

    idle_s: float = Field(900.0, ge=1, le=86_400, description="a driver without an order ends after this long")
    ray_address: str | None = Field(None, description="Ray cluster of the env runners; default one in this process")
    ray_cpus: int | None = Field(None, ge=1, le=10_000, description="CPUs an own Ray counts on; default runners + 2")
    rom: ReadableFile | None = Field(None, description="the user's own ROM image, for games that need one")
    start_state: ReadableFile | None = Field(
        None, description="state saved with that ROM at which its episodes begin: the hero can walk; Bramble needs none"
    )
    learning_rate: float = Field(3e-4, gt=0, le=1)
    entropy: float = Field(0.02, ge=0, le=1, description="bonus for undecided policies; more explores longer")
    curiosity: float = Field(0.5, ge=0, le=100, description="weight of RND's advantage beside the game's")
    curriculum: list[float] = Field(
        default_factory=list, max_length=64, description="share of episodes begun after milestone 1, 2, ...: sum <= 0.5"
    )

    @field_validator("curriculum")
    @classmethod
    def _fair(cls, curriculum: list[float]) -> list[float]:
        """Refuse here what would otherwise be refused in every env runner."""
        CurriculumShares(tuple(curriculum))
        return curriculum


class TrainerSettings(ServiceSettings):
    """What the trainer service reads."""

    trainer: TrainerGroup = Field(default_factory=TrainerGroup)
    driver: DriverGroup = Field(default_factory=DriverGroup)


class DriverSettings(ServiceSettings):
    """What a driver reads; it inherits the service's environment, so both groups are known to it."""

    trainer: TrainerGroup = Field(default_factory=TrainerGroup)
    driver: DriverGroup = Field(default_factory=DriverGroup)
