"""Computes the reward of an environment: weighted terms of a profile. Keeps each term's sum for the report."""

import tomllib
from pathlib import Path
from typing import Annotated, Final, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from services.trainer.env.terms import TERMS, ConstantTerm, Term, Transition, When
from shared.config.problems import first_problem
from shared.errors import ContractError
from shared.game.decoding.state import GameState

PROFILES: Final = Path(__file__).with_name("profiles")


class RewardProfile(BaseModel):
    """Weights by term. A missing term, or one of weight 0, is skipped."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str = Field(max_length=200)
    weights: dict[str, Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]]

    @field_validator("weights")
    @classmethod
    def _known(cls, weights: dict[str, float]) -> dict[str, float]:
        unknown = set(weights) - set(TERMS)
        if unknown:
            raise ValueError(f"unknown terms {', '.join(sorted(unknown))}: choose from {', '.join(sorted(TERMS))}")
        return weights

    @classmethod
    def load(cls, name: str) -> Self:
        """Load a profile of this package by name, or a file by path. Raises ContractError for a wrong one."""
        path = Path(name) if name.endswith(".toml") else PROFILES / f"{name}.toml"
        try:
            return cls.model_validate(tomllib.loads(path.read_text("utf-8")))
        except FileNotFoundError as error:
            raise ContractError(f"unknown reward profile {name!r}: choose from {', '.join(profiles())}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise ContractError(f"reward profile {path.name}: {error}") from error
        except ValidationError as error:
            raise ContractError(f"reward profile {path.name}: {first_problem(error)}") from error


def profiles() -> list[str]:
    """The names of this package's profiles."""
    return sorted(file.stem for file in PROFILES.glob("*.toml"))


class Rewards:
    """The weighted terms of one environment. `sums` holds what each paid since the start of the episode."""

    def __init__(self, profile: RewardProfile) -> None:
        self._terms: dict[When, list[tuple[str, float, Term]]] = {when: [] for when in get_args(When)}
        for name, weight in profile.weights.items():
            if weight:
                term = TERMS[name]()
                self._terms[term.when].append((name, weight, term))
        self._each_step = self._terms["step"]
        self._steady = [
            (name, weight * term.worth)
            for name, weight, term in self._terms["always"]
            if isinstance(term, ConstantTerm)
        ]
        self._names = [name for name, weight in profile.weights.items() if weight]
        self.sums: dict[str, float] = {}

    def begin(self, state: GameState) -> None:
        """A new episode starts at `state`."""
        every = [entry for terms in self._terms.values() for entry in terms]
        self.sums = dict.fromkeys(self._names, 0.0)
        for _, _, term in every:
            term.begin(state)

    def step(self, step: Transition) -> float:
        """The reward of one step."""
        total, state, detectors, trace, sums = 0.0, step.state, step.detectors, step.trace, self.sums
        if self._each_step:
            total += self._pay(self._each_step, step)
        if detectors.stuck or detectors.loop:
            total += self._pay(self._terms["idle"], step)
        for name, paid in self._steady:
            sums[name] += paid
            total += paid
        if trace.new_tile or trace.new_room:
            total += self._pay(self._terms["seen"], step)
        if state.scene is not step.previous.scene or state.dialog is not None or state.menu:
            total += self._changed(step)
        if detectors.died:
            total += self._pay(self._terms["died"], step)
        return total

    def _changed(self, step: Transition) -> float:
        """What the terms pay that need a changed scene, a text or a menu."""
        total, state = 0.0, step.state
        if state.menu:
            total += self._pay(self._terms["menu"], step)
        if state.inventory is not step.previous.inventory:
            total += self._pay(self._terms["owned"], step)
        if state.dialog is not None:
            total += self._pay(self._terms["text"], step)
        if step.detectors.puzzle_gain:
            total += self._pay(self._terms["solved"], step)
        return total

    def _pay(self, terms: list[tuple[str, float, Term]], step: Transition) -> float:
        total = 0.0
        sums = self.sums
        for name, weight, term in terms:
            worth = term(step)
            if worth:
                paid = weight * worth
                sums[name] += paid
                total += paid
        return total
