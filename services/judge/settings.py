"""Settings of the judge service, `ZELDA_JUDGE__...`, and `ZELDA_JUDGES_FILE`."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from services.judge.config import load_judges, load_phases
from shared.config.settings import HttpUrl, ReadableFile, ServiceSettings, SettingsGroup


class JudgeGroup(SettingsGroup):
    """How this process judges. What it judges with stands in the judges file."""

    default_url: HttpUrl = Field(
        "http://127.0.0.1:8089/v1", description="where the built-in judges are served; unused with a judges file"
    )
    phases_file: ReadableFile | None = Field(None, description="YAML with phases and room names; else the built-in")
    use_direct: bool = Field(False, description="call each route's direct_url, past the llm-d gateway")
    slots: int = Field(32, ge=1, le=1_000, description="segments in work at once")
    patience_s: float = Field(
        120, ge=0, description="how long a route must have answered no call at all before its judge abstains"
    )
    min_weight: float = Field(0.5, gt=0, le=1, description="least share of the weights that must be judged")
    cache_size: int = Field(5_000, ge=0, description="remembered results for identical segments; 0 switches it off")
    replica: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")] = Field(
        "judge-0", description="name of this process among the judges, e.g. the pod's"
    )
    replicas: int = Field(1, ge=1, le=1_000, description="judge processes that share the budget")
    budget_calls: int | None = Field(None, ge=0, description="most calls of one epoch, all replicas together")
    budget_tokens: int | None = Field(None, ge=0, description="most prompt and output tokens of one epoch")
    budget_money: float | None = Field(None, ge=0, description="most money of one epoch, by the prices of the judges")
    canary_segments: int = Field(8, ge=0, le=200, description="segments of epoch 0 judged again in every later epoch")
    audit_share: float = Field(0.05, ge=0, le=1, description="share of segments also compared in pairs, both orders")

    @field_validator("phases_file")
    @classmethod
    def _phases_are_right(cls, value: Path | None) -> Path | None:
        load_phases(value)
        return value


class JudgeSettings(ServiceSettings):
    """Everything the judge reads from its environment."""

    judges_file: ReadableFile | None = Field(None, description="YAML with routes and judges; else the built-in three")
    judge: JudgeGroup = Field(default_factory=JudgeGroup)

    @field_validator("judges_file")
    @classmethod
    def _judges_are_right(cls, value: Path | None) -> Path | None:
        if value is not None:
            load_judges(value, "")
        return value
