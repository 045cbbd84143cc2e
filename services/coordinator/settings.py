"""Settings of the coordinator: `ZELDA_COORDINATOR__...`, beside the common settings."""

from typing import Annotated, Any, cast

from pydantic import AfterValidator, DirectoryPath, Field

from services.coordinator.api.tokens import parse_tokens
from shared.config.settings import ReadableFile, ServiceSettings, SettingsGroup
from shared.contracts.run import Game, RunConfig


def _tokens(path: ReadableFile) -> ReadableFile:
    parse_tokens(path.read_text(encoding="utf-8"))
    return path


def _fields_of_runs(defaults: dict[str, Any]) -> dict[str, Any]:
    RunConfig.model_validate(defaults)
    return defaults


class CoordinatorSettings(SettingsGroup):
    """Intervals, timeouts and API limits. Times in seconds."""

    tokens_file: Annotated[ReadableFile, AfterValidator(_tokens)] = Field(
        description="file with one `viewer:TOKEN` or `operator:TOKEN` per line"
    )
    interval_s: float = Field(2.0, ge=0.1, le=60, description="time between two passes over all active runs")
    listing_s: float = Field(
        30.0,
        ge=1,
        le=3_600,
        description="time between two listings of all runs, which find those whose event was lost",
    )
    quiet_s: float = Field(30.0, ge=1, le=3_600, description="time without progress after which events are republished")
    silence_s: float = Field(
        900.0, ge=10, le=86_400, description="observed time without a heartbeat after which a run fails"
    )
    stop_s: float = Field(50.0, ge=1, le=3_600, description="longest wait for the checkpoint of a stopped run")
    lease_s: float = Field(10.0, ge=1, le=300, description="time after which a dead leader is replaced")
    requests_per_s: float = Field(
        50.0, gt=0, le=10_000, description="rate limit of one token, and of one address without a valid token"
    )
    run_defaults: Annotated[dict[str, Any], AfterValidator(_fields_of_runs)] = Field(
        default_factory=dict, description="fields that a new run takes where its request leaves them out, as JSON"
    )
    max_env_runners: int | None = Field(
        None, ge=0, le=10_000, description="env runners for which the cluster has room; a new run may not ask for more"
    )
    games: list[Game] | None = Field(
        None, description="games that this installation can open, as JSON; unset: unknown, and the trainer finds out"
    )
    logs_dir: DirectoryPath | None = Field(
        None, description="directory with the log files of a local system, which operators may then read on the page"
    )
    burst: int = Field(200, ge=1, le=100_000, description="requests that one token or address can send in one burst")


class Settings(ServiceSettings):
    """All settings of the coordinator."""

    coordinator: CoordinatorSettings = Field(
        default_factory=lambda: cast(CoordinatorSettings, {}), validate_default=True
    )
