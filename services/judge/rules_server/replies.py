"""Builds one choice: a vote that follows the request's JSON Schema, with seeded noise, or simulated garbage."""

import hashlib
import json
import random
from collections.abc import Mapping
from typing import Any

from services.judge.rules_server.bad_request import BadRequest
from services.judge.rules_server.facts_parser import split_pair
from services.judge.rules_server.planner import plan_reply, plans
from services.judge.rules_server.scoring import RULES, ClipTotals, clip_totals, reason


def choice_rng(seed: int, request_seed: int | None, index: int, text: str) -> random.Random:
    """Return the generator of one choice: equal for equal seed, index and prompt, as in vLLM.

    Without a seed of the request it is another one each time.
    """
    if request_seed is None:
        return random.Random()  # noqa: S311  # votes are no secrets
    base = f"{seed}|{request_seed + index}|{text}"
    return random.Random(hashlib.sha256(base.encode()).digest())  # noqa: S311


def reply(
    schema: Mapping[str, Any] | None, text: str, noise: float, rng: random.Random, *, obey_texts: bool = False
) -> str:
    """Return the text of one choice: a vote, or a plan. Without a schema it is prose, as a model's would be."""
    if schema is None:
        return f"The clip shows {reason(clip_totals(text))}."
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise BadRequest("response_format: the schema needs properties")
    if plans(properties):
        return plan_reply(properties, text, obey_texts)
    pair = split_pair(text)
    values = {name: _value(name, rule, text, pair, noise, rng) for name, rule in properties.items()}
    return json.dumps(values)


def _value(
    name: str, rule: Any, text: str, pair: tuple[str, str] | None, noise: float, rng: random.Random
) -> str | int:
    kind = rule.get("type") if isinstance(rule, Mapping) else None
    if kind == "string" and "enum" in rule:
        return _better(pair, noise, rng)
    if kind == "string":
        return reason(clip_totals(pair[0] if pair else text))[: rule.get("maxLength", 200)]
    if kind == "integer" and name in RULES:
        return _rounded(RULES[name](clip_totals(text)) + rng.gauss(0, noise), rule)
    raise BadRequest(f"response_format: the rules judge has no rule for {name!r:.60}; its rules: {', '.join(RULES)}")


def _rounded(value: float, rule: Mapping[str, Any]) -> int:
    return int(max(rule.get("minimum", 0), min(rule.get("maximum", 5), round(value))))


def _better(pair: tuple[str, str] | None, noise: float, rng: random.Random) -> str:
    if pair is None:
        raise BadRequest("response_format: a comparison needs a prompt with CLIP A and CLIP B")
    first, second = (_overall(clip_totals(text)) + rng.gauss(0, noise / 5) for text in pair)
    if abs(first - second) < 0.02:
        return "equal"
    return "A" if first > second else "B"


def _overall(clip: ClipTotals) -> float:
    """Return one number for a clip, for comparisons: progress counts three times."""
    return (2 * RULES["progress"](clip) + sum(rule(clip) for rule in RULES.values())) / 35


GARBAGE = (
    "",
    "I cannot judge this clip.",
    '{"reason": "cut o',
    "```json\n{}\n```",
    "null",
    '{"reason": "x", "progress": 9, "dialog": 9, "puzzle": 9, "novelty": 9, "efficiency": 9}',
    '{"reason": "x", "progress": NaN, "dialog": 1e999, "puzzle": "4", "novelty": true, "efficiency": 3.5}',
    " " * 3_000,
    '[{"progress": 3}]',
)


def garbage_reply(rng: random.Random) -> str:
    """Return a reply that is not a vote."""
    return rng.choice(GARBAGE)
