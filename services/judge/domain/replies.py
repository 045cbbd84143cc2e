"""Parses a model's replies. Only a reply that follows the schema exactly counts; nothing is repaired.

A repaired vote is an invented one: prose around the JSON or a number out of range shows that the server does not apply
the schema, which must be counted, not hidden.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.contracts.scores import MAX_VOTE
from shared.llm.json_reply import InvalidReply, read_object


@dataclass(frozen=True, slots=True)
class Vote:
    """One valid sample: a whole number for each dimension, and the reason."""

    reason: str
    values: dict[str, int]


@dataclass(frozen=True, slots=True)
class PairReply:
    """Which clip is better, `A` (the one shown first), `B` or `equal`, and the reason, if the judge gives one."""

    reason: str
    better: str


def parse_vote(content: object, finish_reason: object, dimensions: Sequence[str]) -> Vote:
    """Parse one choice. Raises InvalidReply."""
    reply = _object(content, finish_reason)
    _require_fields(reply, {"reason", *dimensions})
    return Vote(_reason(reply), {name: _whole_number(reply, name) for name in dimensions})


def parse_numbers(content: object, finish_reason: object, dimensions: Sequence[str]) -> Vote:
    """Parse one choice without a reason. Raises InvalidReply."""
    reply = _object(content, finish_reason)
    _require_fields(reply, set(dimensions))
    return Vote("", {name: _whole_number(reply, name) for name in dimensions})


def parse_pair(content: object, finish_reason: object, *, reason: bool = True) -> PairReply:
    """Parse one comparison. Raises InvalidReply."""
    reply = _object(content, finish_reason)
    _require_fields(reply, {"reason", "better"} if reason else {"better"})
    text = _reason(reply) if reason else ""
    if reply["better"] not in ("A", "B", "equal"):
        raise InvalidReply('"better" is neither "A" nor "B" nor "equal"')
    return PairReply(text, str(reply["better"]))


def _object(content: object, finish_reason: object) -> dict[str, Any]:
    if not isinstance(content, str):
        raise InvalidReply("the reply has no text")
    if finish_reason == "length":
        raise InvalidReply("the reply was cut off by the token limit")
    return read_object(content)


def _require_fields(reply: dict[str, Any], names: set[str]) -> None:
    missing = sorted(names - set(reply))
    if missing:
        raise InvalidReply(f"the reply lacks {', '.join(missing)}")
    if set(reply) - names:
        raise InvalidReply("the reply has fields outside the schema")


def _reason(reply: dict[str, Any]) -> str:
    reason = reply["reason"]
    if not isinstance(reason, str):
        raise InvalidReply("the reason is not a text")
    return "".join(char if char.isprintable() else " " for char in reason)[:500]


def _whole_number(reply: dict[str, Any], name: str) -> int:
    value = reply[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidReply(f"{name} is not a whole number")
    if not 0 <= value <= MAX_VOTE:
        raise InvalidReply(f"{name} is out of the range 0 to {MAX_VOTE}")
    return value
