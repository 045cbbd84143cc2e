"""Builds the request of one judge about one segment: body, upper bound of tokens, digest."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from services.judge.adapters.frames import data_url, enlarged_size, select_frames
from services.judge.config import JudgeSpec
from services.judge.domain.examples.chat import chat_bound, pair_examples
from services.judge.domain.facts.timeline import render
from services.judge.domain.judge_input import JudgeInput
from services.judge.domain.prompts import (
    facts_budget,
    pair_format,
    pair_messages,
    response_format,
    vote_messages,
)
from shared.contracts.base import sha256
from shared.llm.tokens import TEMPLATE_TOKENS, image_token_bound, token_bound

MIN_FACTS_TOKENS = 2_000  # below this, the strict bound would leave too few facts to judge by
PAIR_RUBRIC_TOKENS = 4_000  # reserved in a comparison; the rubric of all five dimensions has 3,300 bytes
# Greedy decoding: the probabilities are read at each number, so samples would only vary what precedes it.
PROBABILITIES: Mapping[str, Any] = MappingProxyType({"temperature": 0, "logprobs": True, "top_logprobs": 20})


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request body without `n` and `seed`. `tokens` is the upper bound of its prompt tokens."""

    body: dict[str, Any]
    tokens: int
    digest: str


async def build_prompt(spec: JudgeSpec, judge_input: JudgeInput, context: int | None) -> Prompt:
    """Build a judge's request about a clip. Raises PromptTooLong if the facts do not fit.

    `context` is the server's context length in tokens, None if it is unknown.
    """
    frames = select_frames(judge_input.frames, spec.frames) if spec.frames else []
    sizes = [enlarged_size(frame, spec.frame_scale) for frame in frames]
    limit = prompt_limit(spec, context)
    room = facts_budget(spec.dimensions, judge_input.guidance, sizes, most=limit, examples=spec.examples)
    if room < MIN_FACTS_TOKENS:
        # Small context: assume two bytes a token, which is likely. If it is wrong the server refuses and we abstain.
        room = facts_budget(spec.dimensions, judge_input.guidance, sizes, most=2 * limit, examples=spec.examples)
    text = render(judge_input.facts, room, short=spec.facts == "short")
    urls = await asyncio.to_thread(lambda: [data_url(frame, spec.frame_scale) for frame in frames])
    reason = spec.asking == "votes"
    messages = vote_messages(
        spec.dimensions,
        text,
        judge_input.guidance,
        urls,
        pictures=spec.frames > 0,
        reason=reason,
        examples=spec.examples,
    )
    tokens = _text_bound(messages) + sum(image_token_bound(*size) for size in sizes)
    extra = {} if reason else PROBABILITIES
    return _prompt(spec, messages, response_format(spec.dimensions, reason=reason), tokens, extra)


def build_pair_prompt(spec: JudgeSpec, first: JudgeInput, second: JudgeInput, context: int | None) -> Prompt:
    """Build a judge's request to compare two clips by their facts alone. Raises PromptTooLong if they do not fit."""
    limit = prompt_limit(spec, context)
    fixed = PAIR_RUBRIC_TOKENS + (chat_bound(pair_examples(reason=True)) if spec.examples else 0)
    room = (limit - fixed) // 2
    if room < MIN_FACTS_TOKENS:
        room = (2 * limit - fixed) // 2  # as for one clip: two bytes a token are likely
    clips = [render(one.facts, room, short=spec.facts == "short") for one in (first, second)]
    reason = spec.asking == "votes"
    messages = pair_messages(spec.dimensions, clips[0], clips[1], reason=reason, examples=spec.examples)
    extra = {} if reason else PROBABILITIES
    return _prompt(spec, messages, pair_format(reason=reason), _text_bound(messages), extra)


def prompt_limit(spec: JudgeSpec, context: int | None) -> int:
    """Return the most tokens of a prompt: the judge's own limit, or the server's context minus the reply."""
    if context is None:
        return spec.max_prompt_tokens
    return min(spec.max_prompt_tokens, context - spec.max_output_tokens)


def _prompt(
    spec: JudgeSpec,
    messages: list[dict[str, Any]],
    form: dict[str, Any],
    tokens: int,
    extra: Mapping[str, Any] = MappingProxyType({}),
) -> Prompt:
    body = {
        "model": spec.model,
        "messages": messages,
        "temperature": spec.temperature,
        "max_tokens": spec.max_output_tokens,
        "response_format": form,
        **extra,
    }
    return Prompt(body, tokens, sha256(json.dumps(body, sort_keys=True).encode()))


def _text_bound(messages: list[dict[str, Any]]) -> int:
    """Token bound of all texts of a chat, without pictures."""
    total = 0
    for message in messages:
        content = message["content"]
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        total += TEMPLATE_TOKENS + sum(token_bound(part) for part in parts)
    return total
