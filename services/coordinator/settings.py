"""What the coordinator can be told from outside: `ZELDA_COORDINATOR__...`, beside the common settings."""

from typing import Annotated, cast

from pydantic import AfterValidator, Field

from services.coordinator.tokens import parse_tokens
from shared.runtime.settings import Group, ReadableFile, ServiceSettings


def _tokens(path: ReadableFile) -> ReadableFile:
    parse_tokens(path.read_text(encoding="utf-8"))
    return path


class CoordinatorSettings(Group):
    """Rhythm, patience and the door of the coordinator. Times in seconds."""

    tokens_file: Annotated[ReadableFile, AfterValidator(_tokens)] = Field(
        description="one `viewer:TOKEN` or `operator:TOKEN` a line; without it nobody could use the API"
    )
    interval_s: float = Field(2.0, ge=0.1, le=60, description="how often runs are looked at")
    quiet_s: float = Field(30.0, ge=1, le=3_600, description="without progress for so long, lost events are rung again")
    silence_s: float = Field(
        900.0, ge=10, le=86_400, description="a run fails after so long, watched, without a heartbeat"
    )
    stop_s: float = Field(50.0, ge=1, le=3_600, description="longest wait for the checkpoint of a stopped run")
    lease_s: float = Field(10.0, ge=1, le=300, description="a dead leader is replaced after so long")
    requests_per_s: float = Field(50.0, gt=0, le=10_000, description="of one client address")
    burst: int = Field(200, ge=1, le=100_000, description="requests that one address may make at once")


class Settings(ServiceSettings):
    """All settings of the coordinator."""

    coordinator: CoordinatorSettings = Field(
        default_factory=lambda: cast(CoordinatorSettings, {}), validate_default=True
    )
