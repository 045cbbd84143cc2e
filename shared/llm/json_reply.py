"""Reads a model's reply as one JSON object. Nothing is repaired: prose around it shows an unapplied schema."""

import json
from typing import Any, Final

MAX_REPLY_CHARS: Final = 4_000  # a vote needs about 300, a plan 1,500; a much longer reply is a runaway generation


class InvalidReply(ValueError):
    """The reply does not follow the schema. The message says why, without the reply's text."""


def read_object(text: str) -> dict[str, Any]:
    """The object. Raises InvalidReply for anything else, for a field named twice, and for NaN and infinities."""
    if len(text) > MAX_REPLY_CHARS:
        raise InvalidReply(f"the reply has {len(text)} characters, more than {MAX_REPLY_CHARS}")
    try:
        reply = json.loads(text, object_pairs_hook=_unique_fields, parse_constant=_no_constant)
    except InvalidReply:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidReply("the reply is not one JSON object") from error
    if not isinstance(reply, dict):
        raise InvalidReply("the reply is JSON, but not an object")
    return reply


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise InvalidReply("the reply names a field twice")
    return result


def _no_constant(name: str) -> float:
    raise InvalidReply(f"the reply contains {name}, which is not a number")
