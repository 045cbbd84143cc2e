"""Values of planner and guidance: which models the drivers of runs may call."""

from pydantic import Field

from deploy.generate.values.field_types import Section
from deploy.generate.values.judges import BudgetValues, PriceValues, ShortName


class PlannerRouteValues(Section):
    """One kind of question, and the model that answers it."""

    route: ShortName = Field("state", description="entry of `llm.models` or `judges.external.routes`")
    timeout_seconds: int = Field(15, ge=1, le=600, description="a later answer counts as none")
    concurrency: int = Field(8, ge=1, le=1000, description="questions in flight per run; further ones are not asked")
    max_output_tokens: int = Field(400, ge=32, le=4000, description="tokens of an answer")
    prices: PriceValues = Field(default_factory=PriceValues, description="for the budgets' `money`")


class PlannerRoutesValues(Section):
    """The kinds of questions. A run that asks one without a route is refused."""

    dialog: PlannerRouteValues | None = Field(
        default_factory=PlannerRouteValues, description="plans for dialogs; null: no such plans"
    )
    puzzle: PlannerRouteValues | None = Field(
        default_factory=lambda: PlannerRouteValues(route="puzzle"), description="plans for puzzles"
    )
    text: PlannerRouteValues | None = Field(
        default_factory=lambda: PlannerRouteValues(max_output_tokens=150), description="suggestions from the state"
    )
    vision: PlannerRouteValues | None = Field(
        default_factory=lambda: PlannerRouteValues(route="vision", timeout_seconds=60, max_output_tokens=150),
        description="suggestions from state and picture",
    )


class PlannerBudgetsValues(Section):
    """Limits for one epoch of a run."""

    planner: BudgetValues = Field(default_factory=BudgetValues, description="plans for dialogs and puzzles")
    guidance: BudgetValues = Field(default_factory=BudgetValues, description="suggestions")


class PlannerValues(Section):
    """Models of planner and guidance (docs/planner.md). They are those of `judges.mode`."""

    enabled: bool = Field(
        False, description="let drivers call models, for runs with `planner.mode` or `guidance.mode` model"
    )
    routes: PlannerRoutesValues = Field(default_factory=PlannerRoutesValues, description="models by kind of question")
    budget: PlannerBudgetsValues = Field(default_factory=PlannerBudgetsValues, description="limits of an epoch")
    keep_answers: bool = Field(True, description="store questions and replies with the run")
    priority: int = Field(
        -5,
        ge=-1000,
        le=1000,
        description="priority of their requests; above `llm.priority`, because games wait for plans and not for scores",
    )
