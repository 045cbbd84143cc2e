"""Parses the body of a chat completion. A malformed body is the route's fault and counts as an outage."""

import json
import math
from collections.abc import Mapping
from typing import Any

from shared.llm.port import Choice, Completion, TokenOptions

MAX_RESPONSE_BYTES = 2_000_000  # eleven votes need 20 kB
MAX_TOKENS = 100_000_000
MAX_REPLY_TOKENS = 4_000
MAX_OPTIONS = 20  # OpenAI's limit


class InvalidCompletion(Exception):
    """The body is not a chat completion."""


def parse_completion(raw: bytes, seconds: float) -> Completion:
    """Parse the body. Raises InvalidCompletion. The texts of the choices are not checked here."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidCompletion("the body is not JSON") from error
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list):
        raise InvalidCompletion("the body has no choices")
    usage = body.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    details = usage.get("prompt_tokens_details")
    return Completion(
        choices=tuple(_choice(choice) for choice in choices[:64]),
        prompt_tokens=_tokens(usage.get("prompt_tokens")),
        cached_tokens=_tokens(details.get("cached_tokens")) if isinstance(details, Mapping) else None,
        output_tokens=_tokens(usage.get("completion_tokens")),
        seconds=seconds,
    )


def _choice(choice: Any) -> Choice:
    if not isinstance(choice, Mapping):
        return Choice(None, None)
    message = choice.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    return Choice(content, choice.get("finish_reason"), _token_options(choice.get("logprobs")))


def _token_options(logprobs: Any) -> tuple[TokenOptions, ...]:
    """Parse the tokens of a choice; none of them if any is malformed: their texts must make up the whole reply."""
    tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    try:
        return tuple(_one_token(token) for token in tokens[:MAX_REPLY_TOKENS]) if isinstance(tokens, list) else ()
    except (KeyError, TypeError, ValueError):
        return ()


def _one_token(token: Any) -> TokenOptions:
    options = [(str(option["token"]), float(option["logprob"])) for option in token["top_logprobs"][:MAX_OPTIONS]]
    if any(math.isnan(value) for _, value in options):
        raise ValueError("a log-probability is not a number")
    return TokenOptions(str(token["token"]), tuple(options))


def _tokens(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS else None


def error_message(raw: bytes) -> str:
    """Return the server's error message for a log line, from OpenAI's JSON or a gateway's plain text."""
    try:
        error = json.loads(raw)["error"]
        text = str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, RecursionError, KeyError, TypeError):
        text = raw[:400].decode("utf-8", "replace")
    return "".join(char if char.isprintable() else " " for char in text)[:200].strip()


def parse_model_list(raw: bytes) -> dict[str, int | None]:
    """Return the models and their context length in tokens, None if unknown; empty if the body is no model list."""
    try:
        entries = json.loads(raw)["data"]
        return {str(entry["id"])[:200]: _tokens(entry.get("max_model_len")) or None for entry in entries[:1_000]}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return {}
