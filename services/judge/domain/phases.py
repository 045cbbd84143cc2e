"""Phases of a game: situations with their own weights and guidance, defined as data.

The first phase whose conditions all hold at the segment's end applies. Without one, the rubric applies unchanged.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from services.judge.domain.facts.states import StepState
from services.judge.domain.rubric import DEFAULT_WEIGHTS
from shared.contracts.scores import DIMENSIONS


class DimensionWeights(BaseModel):
    """Weights of the five dimensions; they sum to 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    progress: float = Field(DEFAULT_WEIGHTS["progress"], ge=0, le=1)
    dialog: float = Field(DEFAULT_WEIGHTS["dialog"], ge=0, le=1)
    puzzle: float = Field(DEFAULT_WEIGHTS["puzzle"], ge=0, le=1)
    novelty: float = Field(DEFAULT_WEIGHTS["novelty"], ge=0, le=1)
    efficiency: float = Field(DEFAULT_WEIGHTS["efficiency"], ge=0, le=1)

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = sum(self.as_dict().values())
        if abs(total - 1) > 1e-6:
            raise ValueError(f"weights sum to {total:.3f}: they must sum to 1; give all five")
        return self

    def as_dict(self) -> dict[str, float]:
        """Return the weight by dimension, in the order of the rubric."""
        return {name: getattr(self, name) for name in DIMENSIONS}


class PhaseConditions(BaseModel):
    """Conditions on the state at the segment's end. An omitted one holds; an unknown value satisfies none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    in_dungeon: bool | None = None
    groups: tuple[int, ...] | None = Field(None, description="room groups, e.g. 0 for the overworld")
    has_items: tuple[str, ...] = Field((), description="the player owns all of these")
    lacks_items: tuple[str, ...] = Field((), description="the player owns none of these")
    essences_at_least: int = Field(0, ge=0)

    def holds(self, state: StepState) -> bool:
        """Return whether all conditions hold."""
        return (
            (self.in_dungeon is None or self.in_dungeon == state.in_dungeon)
            and (self.groups is None or state.group in self.groups)
            and self._items(state)
            and (self.essences_at_least == 0 or (state.essences or 0) >= self.essences_at_least)
        )

    def _items(self, state: StepState) -> bool:
        if not self.has_items and not self.lacks_items:
            return True
        if state.treasures is None:
            return False
        return state.treasures.issuperset(self.has_items) and state.treasures.isdisjoint(self.lacks_items)


class Phase(BaseModel):
    """One phase: its games, its conditions, and its weights and guidance."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    games: tuple[str, ...] = Field(("*",), description="shell patterns on the manifest's game, e.g. `bramble:*`")
    when: PhaseConditions = PhaseConditions()
    weights: DimensionWeights | None = Field(None, description="default is the judges file's weights")
    guidance: Annotated[str, Field(max_length=1_000)] = ""


NO_PHASE = Phase(name="any")


def select_phase(phases: Sequence[Phase], game: str, state: StepState) -> Phase:
    """Return the first matching phase, or one that changes nothing."""
    for phase in phases:
        if any(fnmatchcase(game, pattern) for pattern in phase.games) and phase.when.holds(state):
            return phase
    return NO_PHASE


def weighted_mean(weights: Mapping[str, float], values: Mapping[str, float]) -> tuple[float | None, float]:
    """Return the weighted mean of the known values and their share of the weights; (None, 0) without values."""
    covered = sum(weights.get(name, 0.0) for name in values)
    if covered <= 0:
        return None, 0.0
    mean = sum(weights.get(name, 0.0) * value for name, value in values.items()) / covered
    return min(1.0, max(0.0, mean)), covered / sum(weights.values())
