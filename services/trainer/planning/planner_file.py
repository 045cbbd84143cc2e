"""The planner file: which model answers which kind of question, in YAML; read as the judges file is.

Addresses come from this file only, never from a run or a game. An error is one sentence that names the field.
"""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from shared.config.yaml_document import StrictModel, load_routes, read_built_in
from shared.contracts.driver import QuestionMode
from shared.llm.budget import Budget, TokenPrices
from shared.llm.route_spec import RouteSpec


class PlannerRoute(RouteSpec):
    """One route: a model at an OpenAI-compatible address, with the limits of its calls.

    Its limits are shorter than a judge's: a late plan is of no use, and the game has gone on.
    """

    model: str = Field(min_length=1, max_length=120)
    temperature: float = Field(0.0, ge=0, le=2)
    max_output_tokens: int = Field(400, ge=32, le=4_000)
    prices: TokenPrices = TokenPrices()
    total_timeout_s: float = Field(15, gt=0, le=600, description="timeout of a call, all attempts together")
    longest_timeout_s: float = Field(15, gt=0, le=3_600, description="timeout of a call on a slow route")
    connect_timeout_s: float = Field(2, gt=0, le=60)
    attempts: int = Field(1, ge=1, le=2)
    max_concurrent: int = Field(8, ge=1, le=1_000, description="calls in flight; further questions are not asked")
    wait_s: float = Field(2, gt=0, le=600, description="longest wait for a free slot while no call is answered")
    breaker_failures: int = Field(3, ge=1, le=1_000)


class PlannerBudgets(StrictModel):
    """Limits per epoch of a run: plans and suggestions do not spend each other's."""

    planner: Budget = Budget()
    guidance: Budget = Budget()

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return (self.planner, self.guidance) != (Budget(), Budget())


class PlannerFile(StrictModel):
    """All routes of a deployment's planner, by what they are asked: dialog and puzzle, text and vision."""

    routes: dict[QuestionMode, PlannerRoute] = Field(min_length=1)
    budget: PlannerBudgets = PlannerBudgets()
    keep_answers: bool = Field(
        True, description="store questions and replies as JSON lines, to compare prompts on them"
    )

    @model_validator(mode="after")
    def _timeouts(self) -> Self:
        for mode, route in self.routes.items():
            if route.longest_timeout_s < route.total_timeout_s:
                raise ValueError(
                    f"routes.{mode}: longest_timeout_s {route.longest_timeout_s:g} is shorter than total_timeout_s "
                    f"{route.total_timeout_s:g}: raise it to at least that"
                )
        return self


def load_planner_file(path: Path | None, default_url: str) -> PlannerFile:
    """Load a planner file, or the built-in routes, all served at `default_url`. Raises ConfigError."""
    built_in = read_built_in("services.trainer.planning", "planner.yaml")
    return load_routes(PlannerFile, path, built_in, default_url, "the built-in planner file")
