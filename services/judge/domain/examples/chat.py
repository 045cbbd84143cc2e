"""Worked examples for small models: short clips with the votes that the anchors give them, as turns of a chat.

A model of one or two billion parameters places a clip badly on a scale of words; a few answered clips show it the scale
(docs/judges.md has figures). The clips are made up, belong to no world, and never depend on a segment, so that a server
reads them once. Their bytes are part of the prompt digest.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from services.judge.domain.examples.clips import CLIPS
from shared.contracts.scores import DIMENSIONS
from shared.llm.tokens import TEMPLATE_TOKENS, token_bound

Chat = tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class ExamplePair:
    """Two clips, by their places in CLIPS, and which is better."""

    first: int
    second: int
    better: Literal["A", "B", "equal"]
    reason: str


PAIRS: Final = (
    ExamplePair(0, 5, "B", "B obtained an item; A only walked in known rooms"),
    ExamplePair(1, 2, "A", "A obtained an item and entered a dungeon; B only saw new rooms"),
    ExamplePair(7, 0, "equal", "neither gained anything"),
    ExamplePair(3, 4, "A", "A found a key, opened a door and solved two tasks; B saw one new room"),
    ExamplePair(4, 2, "B", "B saw four new rooms, A one"),
    ExamplePair(6, 7, "A", "A obtained an essence; B died"),
    ExamplePair(5, 3, "B", "B made four clear steps, A one"),
)


@lru_cache(maxsize=64)
def vote_examples(dimensions: tuple[str, ...], *, reason: bool) -> Chat:
    """The clips, each as a user's message with the facts and the judge's reply."""
    turns: list[dict[str, Any]] = []
    for clip in CLIPS:
        votes = dict(zip(DIMENSIONS, clip.votes, strict=True))
        reply = {"reason": clip.reason, **{name: votes[name] for name in dimensions}}
        turns += _answered(clip.facts, reply, reason)
    return tuple(turns)


@lru_cache(maxsize=2)
def pair_examples(*, reason: bool) -> Chat:
    """The comparisons, each as a user's message with both clips and the judge's reply."""
    turns: list[dict[str, Any]] = []
    for pair in PAIRS:
        clips = two_clips(CLIPS[pair.first].facts, CLIPS[pair.second].facts)
        turns += _answered(clips, {"reason": pair.reason, "better": pair.better}, reason)
    return tuple(turns)


def two_clips(first: str, second: str) -> str:
    """The user's message of a comparison, from the facts of both clips."""
    return f"CLIP A\n{first}\nCLIP B\n{second}"


def chat_bound(chat: Chat) -> int:
    """Upper bound of the tokens of these turns."""
    return sum(TEMPLATE_TOKENS + token_bound(turn["content"]) for turn in chat)


def _answered(question: str, reply: dict[str, Any], reason: bool) -> list[dict[str, Any]]:
    """Both turns of one example; the reply keeps its reason only if the judge must give one."""
    kept = {name: value for name, value in reply.items() if reason or name != "reason"}
    return [{"role": "user", "content": question}, {"role": "assistant", "content": json.dumps(kept)}]
