"""Parses a chat completion request. An invalid request raises BadRequest, which becomes status 400."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.judge.rules_server.bad_request import BadRequest

MAX_BODY = 32_000_000
MAX_CHOICES = 32


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request. `parts` is the prompt in order: texts as bytes, None for a picture. `text` holds the facts."""

    model: str
    n: int
    seed: int | None
    temperature: float
    schema: Mapping[str, Any] | None
    text: str
    parts: list[bytes | None]


def parse_chat(raw: bytes, models: Sequence[str]) -> ChatRequest:
    """Parse the body. Raises BadRequest with a sentence for the client."""
    if len(raw) > MAX_BODY:
        raise BadRequest(f"the body has {len(raw)} bytes, the limit is {MAX_BODY}")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON") from error
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
        raise BadRequest("the body needs a list of messages")
    if body.get("model") not in models:
        raise BadRequest(f"unknown model {body.get('model')!r:.80}; models are: {', '.join(models)}")
    parts, text = _prompt(body["messages"])
    temperature = _number(body, "temperature", 1.0)
    n = _whole(body, "n", 1)
    if not 1 <= n <= MAX_CHOICES:
        raise BadRequest(f"n must be 1 to {MAX_CHOICES}")
    seed = None if body.get("seed") is None else _whole(body, "seed", 0)
    return ChatRequest(body["model"], n, seed, temperature, _schema(body.get("response_format")), text, parts)


def _number(body: Mapping[str, Any], name: str, default: float) -> float:
    value = default if body.get(name) is None else body[name]
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadRequest(f"{name} must be a number")
    return float(value)


def _whole(body: Mapping[str, Any], name: str, default: int) -> int:
    value = default if body.get(name) is None else body[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadRequest(f"{name} must be a whole number")
    return value


def _schema(form: Any) -> Mapping[str, Any] | None:
    if form is None or (isinstance(form, dict) and form.get("type") == "text"):
        return None
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        raise BadRequest("response_format must be of type text or json_schema")
    wrapper = form.get("json_schema")
    schema = wrapper.get("schema") if isinstance(wrapper, dict) else None
    if not isinstance(schema, dict):
        raise BadRequest("response_format: json_schema.schema is missing")
    return schema


def _prompt(messages: list[Any]) -> tuple[list[bytes | None], str]:
    """Return all parts in order, and the text of the last user message, which holds the facts."""
    parts: list[bytes | None] = []
    facts = ""
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        pieces = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(pieces, list):
            raise BadRequest("every message needs a content")
        read = [_part(piece) for piece in pieces]
        parts.extend(read)
        if message.get("role") == "user":
            facts = "\n".join(piece.decode() for piece in read if piece is not None)
    return parts, facts


def _part(piece: Any) -> bytes | None:
    kind = piece.get("type") if isinstance(piece, dict) else None
    if kind == "text" and isinstance(piece.get("text"), str):
        return str(piece["text"]).encode("utf-8", "replace")
    if kind == "image_url":
        _check_picture(piece.get("image_url"))
        return None
    raise BadRequest("a content part must be a text or an image_url")


def _check_picture(picture: Any) -> None:
    """Accept inline pictures only: fetching an address from a prompt would allow request forgery (SSRF)."""
    url = picture.get("url") if isinstance(picture, dict) else None
    head, comma, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    if not comma or not head.startswith("data:image/") or not head.endswith(";base64"):
        raise BadRequest("image_url must be a data URL of a picture")
    try:
        start = base64.b64decode(data[:64], validate=True)
    except binascii.Error as error:
        raise BadRequest("image_url: the data is not base64") from error
    if not start.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")):
        raise BadRequest("image_url: the data is neither PNG nor JPEG")
