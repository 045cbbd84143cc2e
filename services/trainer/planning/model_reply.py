"""Reads a model's reply. Only a reply that follows the schema exactly counts, and only macros of the grammar are plans.

Nothing is repaired: a macro that is almost one is somebody's idea of a command, and perhaps a game text's.
"""

import math
from dataclasses import dataclass
from typing import Any

from services.trainer.executor.macros import Macro, MacroError, parse_macro
from services.trainer.planning.plan import NoPlan, Plan
from services.trainer.planning.plan_prompt import MAX_FALLBACK, MAX_GOAL, MAX_MACROS, MAX_SCENE, SUGGESTED
from shared.game.decoding.names import ACTIONS
from shared.llm.json_reply import InvalidReply, read_object


@dataclass(frozen=True, slots=True)
class SuggestedAction:
    """An action by its number, what the model says that it saw, and how sure it is."""

    action: int
    scene: str
    confidence: float


def read_plan(text: str) -> Plan | NoPlan:
    """The plan of a reply; NoPlan with the reason if any part of it is not one."""
    try:
        reply = _fields(text, {"sub_goal", "macros", "fallback", "confidence"})
        macros = _macros(reply["macros"], MAX_MACROS)
        if not macros:
            raise InvalidReply("the plan has no macros")
        return Plan(
            _text(reply, "sub_goal", MAX_GOAL), macros, _macros(reply["fallback"], MAX_FALLBACK), _confidence(reply)
        )
    except InvalidReply as error:
        return NoPlan(f"invalid: {error}")


def read_suggestion(text: str) -> SuggestedAction:
    """The suggestion of a reply. Raises InvalidReply."""
    reply = _fields(text, {"action", "scene", "confidence"})
    if reply["action"] not in SUGGESTED:
        raise InvalidReply("the action is not one of the actions")
    return SuggestedAction(ACTIONS.index(reply["action"]), _text(reply, "scene", MAX_SCENE), _confidence(reply))


def _fields(text: str, names: set[str]) -> dict[str, Any]:
    reply = read_object(text)
    if set(reply) != names:
        raise InvalidReply(f"the reply must have exactly the fields {', '.join(sorted(names))}")
    return reply


def _macros(value: Any, most: int) -> tuple[Macro, ...]:
    """All macros of a list. One that is outside the grammar makes the whole reply invalid."""
    if not isinstance(value, list) or len(value) > most or not all(isinstance(one, str) for one in value):
        raise InvalidReply(f"macros must be a list of at most {most} texts")
    try:
        return tuple(parse_macro(one) for one in value)
    except MacroError as error:
        raise InvalidReply("a macro is outside the grammar") from error


def _text(reply: dict[str, Any], name: str, most: int) -> str:
    value = reply[name]
    if not isinstance(value, str):
        raise InvalidReply(f"{name} is not a text")
    return "".join(char if char.isprintable() else " " for char in value)[:most]


def _confidence(reply: dict[str, Any]) -> float:
    value = reply["confidence"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise InvalidReply("confidence is not a number from 0 to 1")
    return float(value)
