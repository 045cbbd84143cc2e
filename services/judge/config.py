"""The judges file: routes (where a model is served) and judges (which model scores which dimensions), in YAML.

Addresses come from this file only, never from an event or a segment. An error is one sentence that names the field.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from services.judge.domain.phases import DimensionWeights, Phase
from services.judge.domain.vote_merge import VoteSchedule
from shared.config.yaml_document import ConfigError, StrictModel, load_routes, parse_document, read_built_in, read_yaml
from shared.contracts.ids import JudgeName
from shared.contracts.scores import DIMENSIONS
from shared.llm.budget import TokenPrices
from shared.llm.route_spec import RouteSpec
from shared.store import keys

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]


class JudgeSpec(StrictModel):
    """One judge. `kind: rules` scores by rules in this process and needs no route."""

    name: JudgeName
    kind: Literal["model", "rules"] = "model"
    route: Name | None = None
    model: str = Field("rules", min_length=1, max_length=120)
    dimensions: tuple[str, ...] = Field(min_length=1, max_length=5)
    frames: int = Field(0, ge=0, le=16, description="key frames in the prompt, evenly spaced")
    frame_scale: int = Field(3, ge=1, le=8, description="upscaling of frames, in whole pixels")
    temperature: float = Field(0.7, ge=0, le=2)
    asking: Literal["votes", "probabilities"] = Field(
        "votes",
        description="`votes` samples whole votes with reasons; `probabilities` reads expected votes from the "
        "log-probabilities of one short reply, without reasons: `votes` and `temperature` are unused",
    )
    facts: Literal["full", "short"] = Field(
        "full",
        description="`short` leaves out totals that are 0 or unknown: a quarter of the tokens of a small segment",
    )
    examples: bool = Field(
        False, description="answered clips in the prompt, which show a small model the scale; 1,100 tokens, read once"
    )
    spread_scale: float = Field(
        1.0,
        gt=0,
        le=20,
        description="multiplies the uncertainty of votes read from probabilities; a model's is too small",
    )
    votes: tuple[int, ...] = Field(
        (3, 7, 11),
        description="votes requested in total after each step; later steps follow only while votes are split",
    )
    max_prompt_tokens: int = Field(16_000, ge=2_000, description="upper limit, counted as one token per byte")
    max_output_tokens: int = Field(300, ge=32, le=4_000, description="per vote")
    prices: TokenPrices = TokenPrices()

    @field_validator("dimensions")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in value if name not in DIMENSIONS]
        if unknown or len(set(value)) != len(value):
            raise ValueError(f"use each of {', '.join(DIMENSIONS)} at most once, not {', '.join(unknown or value)}")
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
            raise ValueError(f"judge {self.name}: kind model needs a route, kind rules takes none")
        if self.asking == "probabilities" and self.kind != "model":
            raise ValueError(f"judge {self.name}: rules have no probabilities; leave out asking")
        if self.facts == "short" and self.kind != "model":
            raise ValueError(f"judge {self.name}: rules read every total; leave out facts")
        if self.examples and self.kind != "model":
            raise ValueError(f"judge {self.name}: rules need no examples; leave them out")
        if self.temperature == 0 and self.kind == "model" and self.asking == "votes":
            raise ValueError(f"judge {self.name}: at temperature 0 all votes are copies; use 0.3 to 1")
        return self

    @property
    def vote_schedule(self) -> VoteSchedule:
        """The schedule of vote requests."""
        return VoteSchedule(sizes=(1,) if self.asking == "probabilities" else self.votes)


class JudgesFile(StrictModel):
    """All judges and routes of a deployment."""

    rubric: Name = Field("default", description="version of rubric and judges; each version has its own scores")
    routes: dict[Name, RouteSpec] = Field(default_factory=dict, max_length=16)
    judges: tuple[JudgeSpec, ...] = Field(min_length=1, max_length=8)
    # After `judges`: pydantic validates fields in this order, and weights depend on what the judges rate.
    weights: DimensionWeights = Field(
        default_factory=DimensionWeights,
        validate_default=True,
        description="weights of the dimensions; those of dimensions that no judge rates are divided among the others",
    )

    @field_validator("weights")
    @classmethod
    def _of_rated(cls, value: DimensionWeights, info: ValidationInfo) -> DimensionWeights:
        judges: tuple[JudgeSpec, ...] = info.data.get("judges", ())
        if not judges:  # they are invalid themselves
            return value
        rated = {name for judge in judges for name in judge.dimensions}
        within = weights_within(value, rated)
        if within is None:
            names = ", ".join(name for name in DIMENSIONS if name in rated)
            raise ValueError(f"all that judges rate ({names}) has weight 0, so no segment would get a score: raise one")
        return within

    @model_validator(mode="after")
    def _linked(self) -> Self:
        names = [judge.name for judge in self.judges]
        if len(set(names)) != len(names):
            raise ValueError(f"judges {', '.join(names)}: names must be unique")
        for judge in self.judges:
            if judge.route is not None and judge.route not in self.routes:
                raise ValueError(
                    f"judge {judge.name}: unknown route {judge.route!r}; routes are: {', '.join(self.routes) or 'none'}"
                )
        return self

    def with_rubric(self, rubric: str) -> "JudgesFile":
        """Return the same judges under another rubric version."""
        return parse_document(JudgesFile, {**self.model_dump(), "rubric": rubric}, "rubric version")


def weights_within(weights: DimensionWeights, counted: Collection[str]) -> DimensionWeights | None:
    """Divide the weights of other dimensions among the counted ones, in proportion; None if these have no weight."""
    own = weights.as_dict()
    if not any(weight for name, weight in own.items() if name not in counted):
        return weights  # unchanged to the last bit: scores must not depend on a division by 1.0000000000000002
    total = sum(weight for name, weight in own.items() if name in counted)
    if total <= 0:
        return None
    return DimensionWeights(**{name: weight / total if name in counted else 0.0 for name, weight in own.items()})


def weights_in(phase: Phase, of_file: DimensionWeights) -> DimensionWeights:
    """Return the phase's weights of the dimensions that have one in the judges file; else the file's weights."""
    if phase.weights is None:
        return of_file
    counted = [name for name, weight in of_file.as_dict().items() if weight]
    return weights_within(phase.weights, counted) or of_file


class PhasesFile(StrictModel):
    """Phases per game or world, and known room names."""

    phases: tuple[Phase, ...] = Field((), max_length=100)
    places: dict[str, dict[str, Annotated[str, Field(max_length=60)]]] = Field(
        default_factory=dict, description="by game pattern: room name by `group:room` in hexadecimal"
    )


def load_judges(path: Path | None, default_url: str) -> JudgesFile:
    """Load a judges file, or the three built-in judges, all served at `default_url`."""
    built_in = read_built_in("services.judge", "judges.yaml")
    return load_routes(JudgesFile, path, built_in, default_url, "the built-in judges")


def load_service_judges(path: Path | None, default_url: str) -> JudgesFile:
    """Load the service's judges. Its rubric version must be the one that the other services read."""
    file = load_judges(path, default_url)
    if file.rubric != keys.RUBRIC:
        raise ConfigError(
            f"{path}: rubric {file.rubric!r}: the other services read {keys.RUBRIC!r} only; use that name, "
            "and judge a run under another version with `zelda judge segments`"
        )
    return file


def rules_only() -> JudgesFile:
    """Return one judge for all dimensions that scores by rules in this process: no model, no server."""
    judge = {"name": "rules", "kind": "rules", "dimensions": list(DIMENSIONS), "votes": [1]}
    return parse_document(JudgesFile, {"rubric": "rules", "judges": [judge]}, "the rules judge")


def load_phases(path: Path | None) -> PhasesFile:
    """Load a phases file, or the built-in phases of Bramble and Oracle of Seasons."""
    if path is not None:
        return parse_document(PhasesFile, read_yaml(path), str(path))
    return parse_document(PhasesFile, read_built_in("services.judge", "phases.yaml"), "the built-in phases")
