"""Settings of the judge service: `ZELDA_JUDGE__...` and `ZELDA_JUDGES_FILE`."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from services.judge.config import load_judges, load_phases
from shared.config.settings import HttpUrl, ReadableFile, ServiceSettings, SettingsGroup


class JudgeGateSettings(SettingsGroup):
    """When a judge's scores stop counting, by its figures of the epoch before. Without a value a gate is open."""

    alpha: float | None = Field(None, ge=-1, le=1, description="least Krippendorff's alpha, mean over dimensions")
    drift: float | None = Field(None, ge=0, le=1, description="most change of the canary set since epoch 0")
    position_bias: float | None = Field(
        None, ge=0, le=0.5, description="most deviation from one half of the wins of the clip shown first"
    )
    canary_accuracy: float | None = Field(
        None, ge=0, le=1, description="least share of the canary set's pairs ordered as their milestones are"
    )
    judged: int = Field(20, ge=1, le=1_000_000, description="segments without which figures close no gate")


class JudgeGroup(SettingsGroup):
    """How this process judges. The judges file says with which models."""

    default_url: HttpUrl = Field(
        "http://127.0.0.1:8089/v1", description="address of the built-in judges; unused with a judges file"
    )
    phases_file: ReadableFile | None = Field(
        None, description="YAML with phases and room names; default is the built-in file"
    )
    use_direct: bool = Field(False, description="call each route's direct_url, bypassing the llm-d gateway")
    slots: int = Field(32, ge=1, le=1_000, description="segments judged concurrently")
    patience_s: float = Field(
        120, ge=0, description="a judge abstains when its route has answered no call for this long"
    )
    min_weight: float = Field(0.5, gt=0, le=1, description="smallest share of the weights that must be judged")
    cache_size: int = Field(5_000, ge=0, description="cached results for identical segments; 0 disables the cache")
    replica: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")] = Field(
        "judge-0", description="unique name of this process, e.g. the pod's"
    )
    replicas: int = Field(1, ge=1, le=1_000, description="judge processes that share the budget")
    budget_calls: int | None = Field(None, ge=0, description="limit of calls per epoch, all replicas together")
    budget_tokens: int | None = Field(None, ge=0, description="limit of prompt and output tokens per epoch")
    budget_money: float | None = Field(None, ge=0, description="maximum cost per epoch, at the judges' prices")
    keep_replies: bool = Field(False, description="store prompts and raw replies, for `zelda trace`")
    canary_segments: int = Field(8, ge=0, le=200, description="segments of epoch 0 that every later epoch judges again")
    audit_share: float = Field(
        0.05, ge=0, le=1, description="share of segments that are also compared in pairs, in both orders"
    )
    gates: JudgeGateSettings = Field(default_factory=JudgeGateSettings)

    @field_validator("phases_file")
    @classmethod
    def _check_phases(cls, value: Path | None) -> Path | None:
        load_phases(value)
        return value


class JudgeSettings(ServiceSettings):
    """Everything that the judge reads from its environment."""

    judges_file: ReadableFile | None = Field(
        None, description="YAML with routes and judges; default is the three built-in judges"
    )
    judge: JudgeGroup = Field(default_factory=JudgeGroup)

    @field_validator("judges_file")
    @classmethod
    def _check_judges(cls, value: Path | None) -> Path | None:
        if value is not None:
            load_judges(value, "")
        return value
