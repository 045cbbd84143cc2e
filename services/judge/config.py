"""The judges as data: routes (where a model is served) and judges (who asks what of which model), from one YAML file.

Addresses come from this file alone, never from an event or a segment. A mistake is one sentence that names the place.
"""

from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from services.judge.domain.budget import TokenPrices
from services.judge.domain.phases import DimensionWeights, Phase
from services.judge.domain.vote_merge import VoteSchedule
from shared.config.settings import HEADER_SAFE, CertificateFile, HttpUrl, ReadableFile
from shared.contracts.base import first_problem
from shared.contracts.ids import JudgeName
from shared.contracts.scores import DIMENSIONS
from shared.store import keys

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
HeaderValue = Annotated[str, Field(min_length=1, max_length=200, pattern=f"^{HEADER_SAFE}$")]


T = TypeVar("T", bound="StrictModel")


class ConfigError(ValueError):
    """A file of judges or phases is wrong. The message names file and field."""


class StrictModel(BaseModel):
    """Base: unknown fields are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RouteSpec(StrictModel):
    """One OpenAI-compatible address, and how to treat it."""

    url: HttpUrl = Field(description="base address with /v1, e.g. the gateway's status.url + /v1")
    direct_url: HttpUrl | None = Field(None, description="the model's own service, past the gateway; see use_direct")
    token_file: ReadableFile | None = Field(None, description="bearer token, read again for every request: it rotates")
    ca_file: CertificateFile | None = Field(None, description="PEM certificates to trust; else the system's")
    objective: HeaderValue | None = Field(None, description="llm-d inference objective (priority)")
    fairness: HeaderValue | None = Field(None, description="llm-d fairness id; default is the run's id")
    total_timeout_s: float = Field(60, gt=0, le=600, description="whole time of a call, both attempts together")
    connect_timeout_s: float = Field(5, gt=0, le=60)
    attempts: int = Field(2, ge=1, le=2, description="quick attempts; the bus does the slow ones")
    max_concurrent: int = Field(32, ge=1, le=1_000, description="most calls in flight; adapts below that")
    wait_s: float = Field(30, gt=0, le=600, description="longest wait for a free place while no call is answered")
    breaker_failures: int = Field(10, ge=1, le=1_000)
    breaker_open_s: float = Field(30, gt=0, le=3_600)

    def address(self, use_direct: bool) -> str:
        """The base address to use, without a trailing slash."""
        return (self.direct_url if use_direct and self.direct_url else self.url).rstrip("/")


class JudgeSpec(StrictModel):
    """One judge. `kind: rules` scores by rules within the process, without any route."""

    name: JudgeName
    kind: Literal["model", "rules"] = "model"
    route: Name | None = None
    model: str = Field("rules", min_length=1, max_length=120)
    dimensions: tuple[str, ...] = Field(min_length=1, max_length=5)
    frames: int = Field(0, ge=0, le=16, description="key frames shown, evenly chosen")
    frame_scale: int = Field(3, ge=1, le=8, description="upscaling of frames, in whole pixels")
    temperature: float = Field(0.7, ge=0, le=2)
    votes: tuple[int, ...] = Field((3, 7, 11), description="votes asked for; further ones only while they are split")
    max_prompt_tokens: int = Field(16_000, ge=2_000, description="by the bound of one token per byte")
    max_output_tokens: int = Field(300, ge=32, le=4_000, description="per vote")
    prices: TokenPrices = TokenPrices()

    @field_validator("dimensions")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        strange = [name for name in value if name not in DIMENSIONS]
        if strange or len(set(value)) != len(value):
            raise ValueError(f"each of {', '.join(DIMENSIONS)} at most once, not {', '.join(strange or value)}")
        return value

    @field_validator("votes")
    @classmethod
    def _rising(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or list(value) != sorted(set(value)) or value[0] < 1 or value[-1] > 11:
            raise ValueError("give rising numbers of votes from 1 to 11, e.g. [3, 7, 11]")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.kind == "model") != (self.route is not None):
            raise ValueError(f"judge {self.name}: a model needs a route, and only a model")
        if self.temperature == 0 and self.kind == "model":
            raise ValueError(f"judge {self.name}: at temperature 0 all votes are copies of one; use 0.3 to 1")
        return self

    @property
    def vote_schedule(self) -> VoteSchedule:
        """When to ask for how many votes."""
        return VoteSchedule(sizes=self.votes)


class JudgesFile(StrictModel):
    """All judges of a deployment."""

    rubric: Name = Field("default", description="version of rubric and judges; scores are kept per version")
    weights: DimensionWeights = DimensionWeights()
    routes: dict[Name, RouteSpec] = Field(default_factory=dict, max_length=16)
    judges: tuple[JudgeSpec, ...] = Field(min_length=1, max_length=8)

    @model_validator(mode="after")
    def _linked(self) -> Self:
        names = [judge.name for judge in self.judges]
        if len(set(names)) != len(names):
            raise ValueError(f"judges {', '.join(names)}: a name is used twice")
        for judge in self.judges:
            if judge.route is not None and judge.route not in self.routes:
                raise ValueError(
                    f"judge {judge.name}: no route {judge.route!r}, only: {', '.join(self.routes) or 'none'}"
                )
        return self

    def with_rubric(self, rubric: str) -> "JudgesFile":
        """The same judges under another rubric version."""
        return _parse(JudgesFile, {**self.model_dump(), "rubric": rubric}, "rubric version")


class PhasesFile(StrictModel):
    """Phases per game or world, and the names of rooms where they are known."""

    phases: tuple[Phase, ...] = Field((), max_length=100)
    places: dict[str, dict[str, Annotated[str, Field(max_length=60)]]] = Field(
        default_factory=dict, description="by game pattern: room name by `group:room` in hexadecimal"
    )


def load_judges(path: Path | None, default_url: str) -> JudgesFile:
    """The judges of a file, or the three of the design, all served at `default_url`."""
    if path is not None:
        return _parse(JudgesFile, _read(path), str(path))
    data = yaml.safe_load(resources.files("services.judge").joinpath("judges.yaml").read_text("utf-8"))
    for route in data["routes"].values():
        route["url"] = default_url
    return _parse(JudgesFile, data, "the built-in judges")


def load_service_judges(path: Path | None, default_url: str) -> JudgesFile:
    """The judges of a file whose scores the other services find; they read one rubric version only."""
    file = load_judges(path, default_url)
    if file.rubric != keys.RUBRIC:
        raise ConfigError(
            f"{path}: rubric {file.rubric!r}: what the other services read is {keys.RUBRIC!r}; "
            "use that name here, and `zelda judge segments` to judge a run again under another one"
        )
    return file


def rules_only() -> JudgesFile:
    """One judge for all dimensions that scores by rules within the process: no model, no server."""
    judge = {"name": "rules", "kind": "rules", "dimensions": list(DIMENSIONS), "votes": [1]}
    return _parse(JudgesFile, {"rubric": "rules", "judges": [judge]}, "the rules judge")


def load_phases(path: Path | None) -> PhasesFile:
    """The phases of a file, or the built-in ones for Bramble and Oracle of Seasons."""
    if path is not None:
        return _parse(PhasesFile, _read(path), str(path))
    text = resources.files("services.judge").joinpath("phases.yaml").read_text("utf-8")
    return _parse(PhasesFile, yaml.safe_load(text), "the built-in phases")


def _read(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}): name a readable YAML file") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())[:200]}") from error


def _parse(model: type[T], data: Any, where: str) -> T:
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: not a mapping; it needs {', '.join(model.model_fields)}")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = first_problem(error).replace("Value error, ", "").removeprefix("document: ")
        raise ConfigError(f"{where}: {problem}") from error
