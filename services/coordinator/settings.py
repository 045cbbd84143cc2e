"""Settings of the coordinator: `ZELDA_COORDINATOR__...`, beside the common settings."""

from typing import Annotated, cast

from pydantic import AfterValidator, Field

from services.coordinator.api.tokens import parse_tokens
from shared.config.settings import ReadableFile, ServiceSettings, SettingsGroup


def _tokens(path: ReadableFile) -> ReadableFile:
    parse_tokens(path.read_text(encoding="utf-8"))
    return path


class CoordinatorSettings(SettingsGroup):
    """Intervals, timeouts and API limits. Times in seconds."""

    tokens_file: Annotated[ReadableFile, AfterValidator(_tokens)] = Field(
        description="file with one `viewer:TOKEN` or `operator:TOKEN` per line"
    )
    interval_s: float = Field(2.0, ge=0.1, le=60, description="time between two passes over all runs")
    quiet_s: float = Field(30.0, ge=1, le=3_600, description="time without progress after which events are republished")
    silence_s: float = Field(
        900.0, ge=10, le=86_400, description="observed time without a heartbeat after which a run fails"
    )
    stop_s: float = Field(50.0, ge=1, le=3_600, description="longest wait for the checkpoint of a stopped run")
    lease_s: float = Field(10.0, ge=1, le=300, description="time after which a dead leader is replaced")
    requests_per_s: float = Field(50.0, gt=0, le=10_000, description="rate limit of one client address")
    burst: int = Field(200, ge=1, le=100_000, description="requests that one address can send in one burst")


class Settings(ServiceSettings):
    """All settings of the coordinator."""

    coordinator: CoordinatorSettings = Field(
        default_factory=lambda: cast(CoordinatorSettings, {}), validate_default=True
    )
