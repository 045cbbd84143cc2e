"""The reward of an environment: a profile's weights times its terms, with each term's sum kept for the report."""

import tomllib
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from services.trainer.env.terms import TERMS, Term, Transition
from shared.contracts.base import first_problem
from shared.errors import ContractError
from shared.game.state import GameState

PROFILES: Final = Path(__file__).with_name("profiles")


class RewardProfile(BaseModel):
    """Weights by term. A term that is not named, or has weight 0, is left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str = Field(max_length=200)
    weights: dict[str, Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]]

    @field_validator("weights")
    @classmethod
    def _known(cls, weights: dict[str, float]) -> dict[str, float]:
        unknown = set(weights) - set(TERMS)
        if unknown:
            raise ValueError(f"unknown terms {', '.join(sorted(unknown))}: known are {', '.join(sorted(TERMS))}")
        return weights

    @classmethod
    def load(cls, name: str) -> Self:
        """A profile of this package by name, or a file by path; ContractError with one sentence if it is not right."""
        path = Path(name) if name.endswith(".toml") else PROFILES / f"{name}.toml"
        try:
            return cls.model_validate(tomllib.loads(path.read_text("utf-8")))
        except FileNotFoundError as error:
            known = ", ".join(sorted(file.stem for file in PROFILES.glob("*.toml")))
            raise ContractError(f"no reward profile {name!r}: known are {known}, or give the path of a file") from error
        except tomllib.TOMLDecodeError as error:
            raise ContractError(f"reward profile {path.name}: {error}") from error
        except ValidationError as error:
            raise ContractError(f"reward profile {path.name}: {first_problem(error)}") from error


class Rewards:
    """The weighted terms of one environment. `sums` holds what each paid since the start of the episode."""

    def __init__(self, profile: RewardProfile) -> None:
        self._terms: list[tuple[str, float, Term]] = [
            (name, weight, TERMS[name]()) for name, weight in profile.weights.items() if weight
        ]
        self.sums: dict[str, float] = {}

    def begin(self, state: GameState) -> None:
        """A new episode starts at `state`."""
        self.sums = {name: 0.0 for name, _, _ in self._terms}
        for _, _, term in self._terms:
            term.begin(state)

    def step(self, step: Transition) -> float:
        """The reward of one step."""
        total = 0.0
        sums = self.sums
        for name, weight, term in self._terms:
            worth = term(step)
            if worth:
                paid = weight * worth
                sums[name] += paid
                total += paid
        return total
