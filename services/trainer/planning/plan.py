"""A plan, and the port of what makes plans: rules in this process, or models behind the planning process."""

from dataclasses import dataclass
from typing import Protocol

from services.trainer.executor.macros import Macro
from services.trainer.executor.outcome import GameView
from shared.contracts.driver import Need


@dataclass(frozen=True, slots=True)
class Plan:
    """Macros for a sub-goal. The fallback is carried out if one of them fails. The planner gives its confidence."""

    goal: str
    macros: tuple[Macro, ...]
    fallback: tuple[Macro, ...] = ()
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class NoPlan:
    """There is no plan, and why: nothing to do, an invalid answer, a model that is away."""

    reason: str


class PlanMaker(Protocol):
    """Makes one plan at a time. Its methods return immediately: an environment asks in the middle of a step."""

    def ask(self, view: GameView, need: Need) -> None:
        """Begin to plan for what the view shows. An unanswered question is forgotten."""
        ...

    def waits(self) -> bool:
        """Whether the environment that asked stands still for the answer now."""
        ...

    def answer(self) -> Plan | NoPlan | None:
        """Return the plan asked for, or the reason why it does not exist; None while it is being made."""
        ...
