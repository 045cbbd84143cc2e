"""Prepares what one judge is asked about one segment: the request body, its bound in tokens, its digest."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from services.judge.adapters.frames import data_url, enlarged_size, select_frames
from services.judge.config import JudgeSpec
from services.judge.domain.facts.timeline import render
from services.judge.domain.judge_input import JudgeInput
from services.judge.domain.prompts import (
    facts_budget,
    pair_format,
    pair_messages,
    response_format,
    vote_messages,
)
from services.judge.domain.tokens import TEMPLATE_TOKENS, image_token_bound, token_bound
from shared.contracts.base import sha256

TIGHT = 2_000  # tokens of facts below which a strict bound would leave out too much to judge by


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request without `n` and `seed`. `tokens` is the most that its prompt can have."""

    body: dict[str, Any]
    tokens: int
    digest: str


async def build_prompt(spec: JudgeSpec, judge_input: JudgeInput, context: int | None) -> Prompt:
    """The request of a judge about a clip. Raises TooLong if the facts cannot be told in the space there is.

    `context` is the longest context of the server, if it told.
    """
    frames = select_frames(judge_input.frames, spec.frames) if spec.frames else []
    sizes = [enlarged_size(frame, spec.frame_scale) for frame in frames]
    limit = prompt_limit(spec, context)
    room = facts_budget(spec.dimensions, judge_input.guidance, sizes, most=limit)
    if room < TIGHT:
        # A small context: two bytes a token is no bound, but likely; if it is wrong the server refuses, and we abstain.
        room = facts_budget(spec.dimensions, judge_input.guidance, sizes, most=2 * limit)
    text = render(judge_input.facts, room)
    urls = await asyncio.to_thread(lambda: [data_url(frame, spec.frame_scale) for frame in frames])
    messages = vote_messages(spec.dimensions, text, judge_input.guidance, urls, pictures=spec.frames > 0)
    tokens = _bound(messages) + sum(image_token_bound(*size) for size in sizes)
    return _prompt(spec, messages, response_format(spec.dimensions), tokens)


def build_pair_prompt(spec: JudgeSpec, first: JudgeInput, second: JudgeInput, context: int | None) -> Prompt:
    """The request of a judge to compare two clips by their facts alone."""
    room = (prompt_limit(spec, context) - 4_000) // 2  # 4,000: the rubric of all five dimensions has 3,300 bytes
    messages = pair_messages(spec.dimensions, render(first.facts, room), render(second.facts, room))
    return _prompt(spec, messages, pair_format(), _bound(messages))


def prompt_limit(spec: JudgeSpec, context: int | None) -> int:
    """Most tokens of a prompt: the judge's own limit, or what the server's context leaves beside the reply."""
    if context is None:
        return spec.max_prompt_tokens
    return min(spec.max_prompt_tokens, context - spec.max_output_tokens)


def _prompt(spec: JudgeSpec, messages: list[dict[str, Any]], form: dict[str, Any], tokens: int) -> Prompt:
    body = {
        "model": spec.model,
        "messages": messages,
        "temperature": spec.temperature,
        "max_tokens": spec.max_output_tokens,
        "response_format": form,
    }
    return Prompt(body, tokens, sha256(json.dumps(body, sort_keys=True).encode()))


def _bound(messages: list[dict[str, Any]]) -> int:
    """Bound of all texts of a chat; pictures are counted apart."""
    total = 0
    for message in messages:
        content = message["content"]
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        total += TEMPLATE_TOKENS + sum(token_bound(part) for part in parts)
    return total
